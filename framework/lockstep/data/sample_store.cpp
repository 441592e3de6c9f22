#include "lockstep/data/sample_store.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/on_threads.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kStore = "sample store";

std::string facts_of(const Dataset& set) {
  std::string text = formatted("{} samples, {} classes", set.size(), set.classes());
  for (const Field& field : set.fields())
    text += formatted(", {} {} {}", field.name, field.shape.str(), name_of(field.dtype));
  return text;
}

}  // namespace

SampleStore::SampleStore(const Dataset& source, const comm::Communicator& ranks, int threads)
    : ranks_(ranks.duplicate()),
      fields_(source.fields()),
      size_(source.size()),
      classes_(source.classes()),
      description_(formatted("{}, in the memory of {} ranks", source.describe(), ranks.size())),
      mine_(part_of(source.size(), ranks.size(), ranks.rank())) {
  comm::check_same(ranks_, "data set of the store", facts_of(source));
  comm::collectively(ranks_, [&] {
    check(threads >= 1, kStore, "{} threads, expected at least 1", threads);
    check_fields(kStore, fields_);
    for (const Field& field : fields_) sample_bytes_ += field.bytes();
    memory_ = allocate_aligned(static_cast<std::size_t>(mine_.size()) * sample_bytes_);
    on_threads(static_cast<std::size_t>(threads), [&](std::size_t part) {
      const Range some = part_of(mine_.size(), threads, static_cast<std::int64_t>(part));
      read_part(source, {mine_.begin + some.begin, mine_.begin + some.end});
    });
  });
}

void SampleStore::read_part(const Dataset& source, Range part) {
  std::vector<std::byte*> out(fields_.size());
  for (std::int64_t index = part.begin; index < part.end; ++index) {
    std::byte* at = own(index);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      out[f] = at;
      at += fields_[f].bytes();
    }
    source.read(index, out);
  }
}

std::byte* SampleStore::own(std::int64_t index) const {
  return memory_.get() + static_cast<std::size_t>(index - mine_.begin) * sample_bytes_;
}

// The rank whose part has a sample: the first size % ranks parts have one sample more.
int SampleStore::owner(std::int64_t index) const {
  const std::int64_t base = size_ / ranks_.size(), extra = size_ % ranks_.size(), longer = extra * (base + 1);
  return static_cast<int>(index < longer ? index / (base + 1) : extra + (index - longer) / base);
}

void SampleStore::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const std::byte* from = nullptr;
  if (index >= mine_.begin && index < mine_.end) {
    from = own(index);
  } else {
    const std::scoped_lock lock(mutex_);
    const auto guest = guests_.find(index);
    check(guest != guests_.end(), kStore, "sample {} is on rank {}, and no step has brought it here", index,
          owner(index));
    from = guest->second.bytes.get();  // it stays until it is released, after this call
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const std::size_t bytes = fields_[f].bytes();
    if (bytes > 0) std::memcpy(out[f], from, bytes);
    from += bytes;
  }
}

// The samples of other ranks that are not here yet, each with the number of its uses, sorted: so those of one rank lie
// together. Those that are here get their uses at once, as a thread may release them at any time.
std::map<std::int64_t, std::int64_t> SampleStore::hold(std::span<const std::int64_t> samples) {
  for (const std::int64_t index : samples) check_index(index);
  std::map<std::int64_t, std::int64_t> missing;
  const std::scoped_lock lock(mutex_);
  for (const std::int64_t index : samples) {
    if (index >= mine_.begin && index < mine_.end) continue;
    const auto guest = guests_.find(index);
    ++(guest != guests_.end() ? guest->second.uses : missing[index]);
  }
  return missing;
}

// Sends every rank the numbers of the samples that are wanted of it, and receives their bytes, in the order of
// `wanted`.
std::vector<std::byte> SampleStore::exchange(const std::vector<std::int64_t>& wanted) const {
  const auto size = static_cast<std::size_t>(ranks_.size());
  std::vector<std::int64_t> asked(size), asking(size);
  const std::vector<std::int64_t> one(size, 1);
  for (const std::int64_t index : wanted) ++asked[static_cast<std::size_t>(owner(index))];
  ranks_.alltoallv(asked, one, asking, one);
  std::vector<std::int64_t> given(static_cast<std::size_t>(std::reduce(asking.begin(), asking.end(), std::int64_t{0})));
  ranks_.alltoallv(wanted, asked, given, asking);
  std::vector<std::byte> sent(given.size() * sample_bytes_), received(wanted.size() * sample_bytes_);
  for (std::size_t i = 0; i < given.size(); ++i) {
    check(given[i] >= mine_.begin && given[i] < mine_.end, kStore, "sample {} was asked for, this rank has [{}, {})",
          given[i], mine_.begin, mine_.end);
    if (sample_bytes_ > 0) std::memcpy(sent.data() + i * sample_bytes_, own(given[i]), sample_bytes_);
  }
  const auto in_bytes = [&](std::vector<std::int64_t> counts) {
    for (std::int64_t& count : counts) count *= static_cast<std::int64_t>(sample_bytes_);
    return counts;
  };
  ranks_.alltoallv(sent, in_bytes(asking), received, in_bytes(asked));
  return received;
}

void SampleStore::bring(std::span<const std::int64_t> samples) {
  const std::map<std::int64_t, std::int64_t> missing = hold(samples);
  std::vector<std::int64_t> wanted;
  for (const auto& [index, uses] : missing) wanted.push_back(index);
  const std::vector<std::byte> received = exchange(wanted);
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Guest guest{.bytes = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(sample_bytes_, 1)),
                .uses = missing.at(wanted[i])};
    if (sample_bytes_ > 0) std::memcpy(guest.bytes.get(), received.data() + i * sample_bytes_, sample_bytes_);
    guests_[wanted[i]] = std::move(guest);
  }
}

void SampleStore::release(std::span<const std::int64_t> samples) {
  const std::scoped_lock lock(mutex_);
  for (const std::int64_t index : samples) {
    const auto guest = guests_.find(index);
    if (guest != guests_.end() && --guest->second.uses == 0) guests_.erase(guest);
  }
}

void SampleStore::clear() {
  const std::scoped_lock lock(mutex_);
  guests_.clear();
}

std::size_t SampleStore::brought() const {
  const std::scoped_lock lock(mutex_);
  return guests_.size();
}

}  // namespace lockstep::data
