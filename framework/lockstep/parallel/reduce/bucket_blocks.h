// Numbers the blocks of a store's buckets, one bucket after the other. Sums and checksums are kept by block, so that
// neither the number of ranks and threads nor the cuts of buckets into slices change them. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/parallel/reduce/bucket_pieces.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class BucketBlocks {
 public:
  static constexpr std::int64_t kBlock = BucketPieces::kBlock;  // elements; the last block of a bucket may be smaller

  explicit BucketBlocks(std::span<const plan::Bucket> buckets);

  std::int64_t count() const { return first_.back(); }  // of all buckets
  Range of(std::size_t bucket) const { return {first_[bucket], first_[bucket + 1]}; }
  // The block of an element of a bucket, and the blocks that have elements of a range.
  std::int64_t at(std::size_t bucket, std::int64_t element) const { return first_[bucket] + element / kBlock; }
  Range at(std::size_t bucket, Range elements) const {
    return {at(bucket, elements.begin), at(bucket, elements.end + kBlock - 1)};
  }
  std::size_t bucket_of(std::int64_t block) const;

 private:
  std::vector<std::int64_t> first_{0};  // by bucket: its first block; the last entry is the number of all blocks
};

// The part of `by_block`, which has a number for each block, that belongs to these blocks.
template <class T>
std::span<T> part_of_blocks(std::span<T> by_block, Range blocks) {
  return by_block.subspan(static_cast<std::size_t>(blocks.begin), static_cast<std::size_t>(blocks.size()));
}

}  // namespace lockstep::parallel
