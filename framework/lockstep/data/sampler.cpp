#include "lockstep/data/sampler.h"

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::data {
namespace {
constexpr std::string_view kSampler = "sampler";
}

DistributedSampler::DistributedSampler(const SamplerOptions& options) : options_(options) {
  if (options.order != nullptr) {
    check(options.size == options.order->length(), kSampler, "size {}, expected the length of the order, {}",
          options.size, options.order->length());
    check(options.shuffle, kSampler, "an order is given, expected shuffle to be true");
  }
  check(options.size > 0, kSampler, "the data set has {} samples, expected at least 1", options.size);
  check(options.global_batch > 0, kSampler, "global batch {}, expected at least 1", options.global_batch);
  check(options.shards > 0, kSampler, "{} shards, expected at least 1", options.shards);
  check(options.shuffle_block > 0, kSampler, "shuffled blocks of {} samples, expected at least 1",
        options.shuffle_block);
  const Range mine = options.my_shards;
  check(mine.begin >= 0 && mine.begin <= mine.end && mine.end <= options.shards, kSampler,
        "this rank has the shards [{}, {}), expected a part of [0, {})", mine.begin, mine.end, options.shards);
  check(
      options.remainder == Remainder::Keep || options.global_batch <= options.size, kSampler,
      "global batch {} is larger than the data set of {} samples, and an incomplete batch is dropped: no step is left",
      options.global_batch, options.size);
}

std::int64_t DistributedSampler::steps_per_epoch() const {
  const std::int64_t whole = options_.size / options_.global_batch;
  const bool tail = options_.remainder == Remainder::Keep && options_.size % options_.global_batch > 0;
  return whole + (tail ? 1 : 0);
}

std::int64_t DistributedSampler::step_size(std::int64_t offset) const {
  const std::int64_t left = options_.size - offset;
  if (left >= options_.global_batch) return options_.global_batch;
  return options_.remainder == Remainder::Keep ? left : 0;
}

void DistributedSampler::normalise() {
  if (step_size(position_.offset) == 0) position_ = {position_.epoch + 1, 0};
}

void DistributedSampler::seek(SamplerPosition position) {
  check(position.epoch >= 0, kSampler, "epoch {}, expected at least 0", position.epoch);
  check(position.offset >= 0 && position.offset <= options_.size, kSampler,
        "offset {} in the epoch, expected 0 to {} (samples of the data set)", position.offset, options_.size);
  position_ = position;
  normalise();
}

void DistributedSampler::permute(std::int64_t epoch) {
  if (permuted_epoch_ == epoch) return;
  if (options_.order != nullptr) {
    permutation_ = options_.order->indices(options_.seed, epoch);
    permuted_epoch_ = epoch;
    return;
  }
  const std::int64_t block = std::min(options_.shuffle_block, options_.size);
  std::vector<std::int64_t> firsts(static_cast<std::size_t>((options_.size + block - 1) / block));
  for (std::size_t i = 0; i < firsts.size(); ++i) firsts[i] = static_cast<std::int64_t>(i) * block;
  RandomStream random(mix(options_.seed, hash_name("permutation")), static_cast<std::uint64_t>(epoch));
  for (std::size_t i = firsts.size() - 1; i > 0; --i) {  // Fisher-Yates shuffle (Durstenfeld 1964)
    std::swap(firsts[i], firsts[static_cast<std::size_t>(random.below(i + 1))]);
  }
  if (block == 1) {
    permutation_ = std::move(firsts);
  } else {
    permutation_.clear();
    for (const std::int64_t first : firsts) {
      for (std::int64_t i = first; i < std::min(first + block, options_.size); ++i) permutation_.push_back(i);
    }
  }
  permuted_epoch_ = epoch;
}

StepSamples DistributedSampler::next() {
  const std::int64_t size = step_size(position_.offset);
  StepSamples step{.epoch = position_.epoch, .offset = position_.offset, .global_size = size};
  const Range mine = options_.my_shards;
  if (mine.size() > 0) {
    step.local = {part_of(size, options_.shards, mine.begin).begin, part_of(size, options_.shards, mine.end - 1).end};
  }
  step.samples.resize(static_cast<std::size_t>(step.local.size()));
  if (options_.shuffle) permute(step.epoch);
  const auto sample_at = [&](std::int64_t position) {
    const std::int64_t at = step.offset + position;
    return options_.shuffle ? permutation_[static_cast<std::size_t>(at)] : at;
  };
  for (std::int64_t i = 0; i < step.local.size(); ++i)
    step.samples[static_cast<std::size_t>(i)] = sample_at(step.local.begin + i);
  if (step.local.size() > 0 && step.local.begin > 0) step.before = sample_at(step.local.begin - 1);
  if (step.local.size() > 0 && step.local.end < size) step.after = sample_at(step.local.end);
  position_.offset += size;
  normalise();
  return step;
}

}  // namespace lockstep::data
