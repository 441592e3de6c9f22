// Chooses the samples that a rank trains in each step. Each epoch has one permutation of the data set, from (seed,
// epoch). With global batch B, step t takes perm[tB, min((t+1)B, size)), cut into contiguous parts, one per shard
// (part_of()); a rank takes the parts of its shards. So a step has the same samples at every world size. A SampleOrder
// gives other samples than each one once. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/data/sample_order.h"

namespace lockstep::data {

// The treatment of the last size % global_batch samples of an epoch: a shorter step trains them (Keep), or the epoch
// omits them (Drop).
enum class Remainder { Keep, Drop };

struct SamplerOptions {
  std::int64_t size = 0;          // number of samples in the data set; with `order`, of an epoch
  std::int64_t global_batch = 1;  // samples of a step, over all ranks
  std::int64_t shards = 1;        // shards of a step; without --shards, one per rank
  Range my_shards = {0, 1};       // this rank's shards
  std::uint64_t seed = 0;
  bool shuffle = true;
  // More than 1: a permutation of blocks of this many neighbouring samples, which stay together in their order. Each
  // rank then reads runs of neighbours: for packed records, whose samples lie in a random order (`lockstep pack
  // --shuffle`).
  std::int64_t shuffle_block = 1;
  Remainder remainder = Remainder::Keep;
  // The samples of each epoch and their order, in place of a permutation; shuffle must be true. null: a permutation.
  std::shared_ptr<const SampleOrder> order{};
};

// A position in training: `offset` samples of epoch `epoch` (from 0) are consumed, over all ranks.
struct SamplerPosition {
  std::int64_t epoch = 0, offset = 0;
  bool operator==(const SamplerPosition&) const = default;
};

// The samples of one step on one rank.
struct StepSamples {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;               // position of the step's first sample in its epoch
  std::int64_t global_size = 0;          // samples of the step, over all ranks; -1: each rank has a stream of its own
  Range local{};                         // this rank's part of [0, global_size)
  std::vector<std::int64_t> samples{};   // indices into the data set, local.size() of them; may be empty
  std::int64_t before = -1, after = -1;  // the step's samples next to this rank's; -1: there is none, or no own sample

  bool is_streamed() const { return global_size < 0; }
};

class DistributedSampler {
 public:
  // Throws Error for options that allow no step, such as a batch larger than a data set whose remainder is dropped.
  explicit DistributedSampler(const SamplerOptions& options);

  StepSamples next();  // the next step's samples; begins the next epoch after the last step of one
  SamplerPosition position() const { return position_; }
  // Continues at `position`; an offset at the end of an epoch means the start of the next one. Throws Error if the
  // offset is outside the data set.
  void seek(SamplerPosition position);

  std::int64_t steps_per_epoch() const;
  const SamplerOptions& options() const { return options_; }

 private:
  std::int64_t step_size(std::int64_t offset) const;  // samples of the step at `offset`; 0: the epoch has no more steps
  void normalise();
  void permute(std::int64_t epoch);

  SamplerOptions options_;
  SamplerPosition position_;
  std::vector<std::int64_t> permutation_;
  std::int64_t permuted_epoch_ = -1;
};

}  // namespace lockstep::data
