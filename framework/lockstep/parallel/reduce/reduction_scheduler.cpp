#include "lockstep/parallel/reduce/reduction_scheduler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/sum_of_squares.h"
#include "lockstep/parallel/reduce/gradient_noise.h"

namespace lockstep::parallel {

ReductionScheduler::ReductionScheduler(const plan::ParameterStore& store, BucketReducer& reducer,
                                       const WorldLayout& world, Options options)
    : store_(store),
      reducer_(reducer),
      walk_(world),
      options_(std::move(options)),
      blocks_(store.buckets()),
      awaited_(store.buckets().size()),
      complete_(store.buckets().size()) {
  if (!options_.noise.empty()) measure_.squares.resize(static_cast<std::size_t>(blocks_.count()));
}

void ReductionScheduler::begin_step() {
  walk_.begin();
  begin_shard();
}

void ReductionScheduler::begin_shard() {
  measure_.left = awaited_.size();
  std::ranges::fill(statistics(), 0.0);
  for (std::size_t b = 0; b < awaited_.size(); ++b) awaited_[b] = static_cast<int>(store_.buckets()[b].entries.size());
}

void ReductionScheduler::end_shard() {
  walk_.next();
  if (!walk_.done()) begin_shard();
}

void ReductionScheduler::open() {
  complete_.assign(complete_.size(), false);
  next_ = 0;
  squares_started_ = false;
}

void ReductionScheduler::end_statistics(double samples, double weight) {
  measure_.samples = samples;
  measure_.weight = weight;
  const std::vector<std::span<double>>& slots = options_.statistics;
  walk_.join([&](int from, int into) {
    const std::span<double> source = slots[static_cast<std::size_t>(from)];
    add_into<double>(std::ssize(source), source.data(), slots[static_cast<std::size_t>(into)].data());
  });
  if (walk_.last()) reducer_.start(kStatisticsReduction);
}

int ReductionScheduler::retire(const Parameter* parameter) {
  const int bucket = store_.bucket_of(parameter);
  if (--awaited_[static_cast<std::size_t>(bucket)] == 0) complete(static_cast<std::size_t>(bucket));
  return bucket;
}

void ReductionScheduler::zero(std::size_t number) {
  const plan::Bucket& bucket = store_.buckets()[number];
  std::memset(bucket.gradients[static_cast<std::size_t>(slot())], 0,
              static_cast<std::size_t>(bucket.elements) * size_of(store_.options().dtype));
  awaited_[number] = 0;
  complete(number);
}

// Plans of different batches may finish buckets in different orders, but all ranks must start buckets in one order.
void ReductionScheduler::complete(std::size_t bucket) {
  if (!options_.noise.empty()) measure(bucket);
  join(store_.buckets()[bucket]);
  if (!walk_.last()) return;
  complete_[bucket] = true;
  while (next_ < complete_.size() && complete_[next_]) reducer_.start(reduction_of(next_++));
}

void ReductionScheduler::join(const plan::Bucket& bucket) const {
  walk_.join([&](int from_slot, int into_slot) {
    const void* from = bucket.gradients[static_cast<std::size_t>(from_slot)];
    void* into = bucket.gradients[static_cast<std::size_t>(into_slot)];
    if (store_.options().dtype == DType::F64) {
      add_into(bucket.elements, static_cast<const double*>(from), static_cast<double*>(into));
    } else {
      add_into(bucket.elements, static_cast<const float*>(from), static_cast<float*>(into), options_.wire);
    }
  });
}

// The gradient of the shard alone lies in its slot: adds up its squares, in blocks, so that neither threads nor the
// size of buckets change the sum.
void ReductionScheduler::measure(std::size_t number) {
  const plan::Bucket& bucket = store_.buckets()[number];
  const std::byte* gradient = bucket.gradients[static_cast<std::size_t>(slot())];
  const bool wide = store_.options().dtype == DType::F64;
  constexpr std::int64_t kBlock = BucketBlocks::kBlock;
  const Range blocks = blocks_.of(number);
  const std::span<double> squares = part_of_blocks(std::span(measure_.squares), blocks);
  parallel_for(blocks.size(), kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = b * kBlock, n = std::min(kBlock, bucket.elements - first);
      squares[static_cast<std::size_t>(b)] = wide ? sum_of_squares(reinterpret_cast<const double*>(gradient) + first, n)
                                                  : sum_of_squares(reinterpret_cast<const float*>(gradient) + first, n);
    }
  });
  if (--measure_.left == 0) end_measuring();
}

void ReductionScheduler::end_measuring() {
  const std::span<double> sums = options_.noise[static_cast<std::size_t>(slot())];
  std::ranges::fill(sums, 0.0);
  if (measure_.samples > 0 && measure_.weight > 0) {
    double square = 0;
    for (const double block : measure_.squares) square += block;
    sums[kShardSquares] = square / (measure_.weight * measure_.weight);
    sums[kInverseSamples] = 1 / measure_.samples;
    sums[kShards] = 1;
  }
  walk_.join([&](int from, int into) {
    add_into<double>(kNoiseSums, options_.noise[static_cast<std::size_t>(from)].data(),
                     options_.noise[static_cast<std::size_t>(into)].data());
  });
}

bool ReductionScheduler::is_gradient_reduced() {
  if (next_ < complete_.size()) return false;
  for (std::size_t b = 0; b < complete_.size(); ++b) {
    if (!reducer_.reduced(reduction_of(b))) return false;
  }
  if (!options_.squares) return true;
  const int squares = reduction_of(complete_.size());
  if (!std::exchange(squares_started_, true)) reducer_.start(squares);
  return reducer_.reduced(squares);
}

}  // namespace lockstep::parallel
