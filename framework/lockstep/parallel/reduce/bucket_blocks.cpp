#include "lockstep/parallel/reduce/bucket_blocks.h"

#include <algorithm>

namespace lockstep::parallel {

BucketBlocks::BucketBlocks(std::span<const plan::Bucket> buckets) {
  for (const plan::Bucket& b : buckets) first_.push_back(first_.back() + (b.elements + kBlock - 1) / kBlock);
}

std::size_t BucketBlocks::bucket_of(std::int64_t block) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(first_, block) - first_.begin()) - 1;
}

}  // namespace lockstep::parallel
