// Which samples a rank trains in which step. One permutation of the data set per epoch from (seed, epoch); step t of
// batch B takes perm[tB, min((t+1)B, size)), cut into contiguous parts, one per shard (part_of; without --shards
// each rank is one shard); a rank takes those of its shards. So steps hold the same samples at every world size. One
// thread; copyable.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"

namespace lockstep::data {

// The last size % global_batch samples of an epoch: trained in a shorter step (Keep), or left out of it (Drop).
enum class Remainder { Keep, Drop };

struct SamplerOptions {
  std::int64_t size = 0;          // of the data set
  std::int64_t global_batch = 1;  // samples of a step, over all ranks
  std::int64_t shards = 1;        // of all ranks together
  Range my_shards = {0, 1};       // this rank's
  std::uint64_t seed = 0;
  bool shuffle = true;
  Remainder remainder = Remainder::Keep;
};

// Where training stands: `offset` samples of epoch `epoch` are consumed, over all ranks.
struct SamplerPosition {
  std::int64_t epoch = 0, offset = 0;
  bool operator==(const SamplerPosition&) const = default;
};

struct StepSamples {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;              // of the step's first sample in its epoch
  std::int64_t global_size = 0;         // samples of the step, over all ranks
  Range local{};                        // this rank's part of [0, global_size)
  std::vector<std::int64_t> samples{};  // indices into the data set, one for each of `local`; may be empty
};

class DistributedSampler {
 public:
  // Throws Error for options that cannot be met, such as a batch larger than a data set whose remainder is dropped.
  explicit DistributedSampler(SamplerOptions options);

  StepSamples next();  // goes on with the next epoch by itself
  SamplerPosition position() const { return position_; }
  // An offset at the epoch's end is the next epoch's start. Throws Error if it is outside the data set.
  void seek(SamplerPosition position);

  std::int64_t steps_per_epoch() const;
  const SamplerOptions& options() const { return options_; }

 private:
  std::int64_t step_size(std::int64_t offset) const;  // 0: no step is left in the epoch
  void normalise();
  void permute(std::int64_t epoch);

  SamplerOptions options_;
  SamplerPosition position_;
  std::vector<std::int64_t> permutation_;
  std::int64_t permuted_epoch_ = -1;
};

}  // namespace lockstep::data
