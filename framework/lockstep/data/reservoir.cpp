#include "lockstep/data/reservoir.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::data {
namespace {

constexpr const char* kReservoirSite = "reservoir";

RandomStream random(std::uint64_t seed, std::string_view use, std::int64_t count) {
  return {mix(seed, hash_name(use)), static_cast<std::uint64_t>(count)};
}

}  // namespace

Reservoir::Reservoir(std::vector<Field> fields, ReservoirOptions options, std::uint64_t seed)
    : fields_(std::move(fields)), options_(options), seed_(seed) {
  check_fields(kReservoirSite, fields_);
  check(options_.capacity > 0, kReservoirSite, "capacity {}, expected at least 1 sample", options_.capacity);
  check(options_.replay >= 0 && options_.replay < 1, kReservoirSite,
        "the fraction of past samples in a batch is {}, expected at least 0 and below 1", options_.replay);
}

std::size_t Reservoir::sample_bytes() const {
  std::size_t bytes = 0;
  for (const Field& field : fields_) bytes += field.bytes();
  return bytes;
}

std::vector<std::int64_t> Reservoir::draw(std::int64_t batch) const {
  const auto part = static_cast<std::int64_t>(std::llround(options_.replay * static_cast<double>(batch)));
  const std::int64_t held = counts_.held, count = std::min({part, batch - 1, held});
  std::vector<std::int64_t> slots;
  RandomStream choice = random(seed_, "draw", counts_.batches);
  // Floyd's algorithm for distinct numbers (Bentley and Floyd, "A sample of brilliance" (1987)).
  for (std::int64_t most = held - count; most < held; ++most) {
    const auto slot = static_cast<std::int64_t>(choice.below(static_cast<std::uint64_t>(most) + 1));
    slots.push_back(std::ranges::find(slots, slot) == slots.end() ? slot : most);
  }
  return slots;
}

std::int64_t Reservoir::read(std::int64_t slot, std::span<std::byte* const> out) const {
  const Sample& sample = samples_[static_cast<std::size_t>(slot)];
  const std::byte* from = sample.bytes.data();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::memcpy(out[f], from, fields_[f].bytes());
    from += fields_[f].bytes();
  }
  return sample.id;
}

// Returns the slot for the sample with this number, from 0; -1: none.
std::int64_t Reservoir::slot_for(std::int64_t offered) const {
  if (counts_.held < options_.capacity) return counts_.held;
  const std::int64_t bound = options_.policy == ReservoirPolicy::Uniform ? offered + 1 : options_.capacity;
  const auto slot = static_cast<std::int64_t>(random(seed_, "place", offered).below(static_cast<std::uint64_t>(bound)));
  return slot < options_.capacity ? slot : -1;
}

void Reservoir::put(std::int64_t id, std::span<std::byte* const> sample) {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(open_, true)) ahead_.push_back({counts_, {}});
  const std::int64_t slot = slot_for(counts_.offered++);
  if (slot < 0) return;
  Sample fresh;
  if (!spare_.empty()) {
    fresh = std::move(spare_.back());
    spare_.pop_back();
  }
  fresh.id = id;
  fresh.bytes.resize(sample_bytes());
  std::byte* to = fresh.bytes.data();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::memcpy(to, sample[f], fields_[f].bytes());
    to += fields_[f].bytes();
  }
  if (slot == counts_.held) {
    samples_.push_back(std::move(fresh));
    ++counts_.held;
  } else {
    std::swap(samples_[static_cast<std::size_t>(slot)], fresh);
    ahead_.back().changes.push_back({slot, std::move(fresh)});
  }
}

void Reservoir::end_batch() {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(open_, false)) ahead_.push_back({counts_, {}});
  ++counts_.batches;
}

void Reservoir::release() {
  const std::scoped_lock lock(mutex_);
  check(ahead_.size() > (open_ ? 1U : 0U), kReservoirSite,
        "release() of a batch that does not exist, expected one that was made");
  for (Change& change : ahead_.front().changes) spare_.push_back(std::move(change.before));
  ahead_.pop_front();
}

Reservoir::Counts Reservoir::counts() const {
  const std::scoped_lock lock(mutex_);
  return ahead_.empty() ? counts_ : ahead_.front().before;
}

Reservoir::Frozen Reservoir::freeze() const { return Frozen(*this); }

void Reservoir::restore(std::vector<Sample> samples, const Counts& counts) {
  check(std::ssize(samples) == counts.held && counts.held <= options_.capacity, kReservoirSite,
        "{} samples with counts of {}, expected at most {}, the capacity", samples.size(), counts.held,
        options_.capacity);
  check(counts.held <= counts.offered && counts.batches >= 0, kReservoirSite,
        "{} samples of {} that were offered in {} batches", counts.held, counts.offered, counts.batches);
  for (const Sample& sample : samples)
    check(sample.bytes.size() == sample_bytes(), kReservoirSite, "a sample has {} bytes, expected {}",
          sample.bytes.size(), sample_bytes());
  const std::scoped_lock lock(mutex_);
  check(counts_ == Counts{}, kReservoirSite, "restore() after {} samples, expected before the first one",
        counts_.offered);
  samples_ = std::move(samples);
  counts_ = counts;
}

Reservoir::Frozen::Frozen(const Reservoir& reservoir) : reservoir_(reservoir), lock_(reservoir.mutex_) {
  counts_ = reservoir.ahead_.empty() ? reservoir.counts_ : reservoir.ahead_.front().before;
  for (auto batch = reservoir.ahead_.rbegin(); batch != reservoir.ahead_.rend(); ++batch) {
    for (auto change = batch->changes.rbegin(); change != batch->changes.rend(); ++change)
      before_[change->slot] = &change->before;
  }
}

const Reservoir::Sample& Reservoir::Frozen::at(std::int64_t slot) const {
  const auto changed = before_.find(slot);
  return changed != before_.end() ? *changed->second : reservoir_.samples_[static_cast<std::size_t>(slot)];
}

}  // namespace lockstep::data
