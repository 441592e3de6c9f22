// Memory of a training step: one window per rank, which all ranks of the domain see, with the shared flags, the control
// block, batch statistics and sums of squares; and the addresses of the gradient slots of all ranks of the domain.
// Parts of equal size on all ranks come first in a window, so each rank finds the parts of the others. Construction is
// collective; the memory lives as long as the NodeMemory. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/parallel/control/control_block.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

class StepMemory {
 public:
  struct Size {
    ControlSize control = {};
    std::size_t statistics = 0;  // doubles per shard
    bool squares = false;        // sums of squares, one for each block (bucket_blocks.h) of gradients
    bool norms = false;          // two more sums for each block, of values and of steps
    std::size_t shard_sums = 0;  // doubles per shard that travel with the squares
  };
  // `memory`, in which the store's buckets lie, and `store` outlive this.
  StepMemory(NodeMemory& memory, const plan::ParameterStore& store, const WorldLayout& world, const Size& size);

  // By local rank, for SharedFlags of the gradients' reduction and of the control block.
  std::vector<std::span<std::byte>> reduction_flags() const;
  std::vector<std::span<std::byte>> control_flags() const;
  std::span<std::byte> control_blocks() const;  // of the domain's first rank

  std::vector<std::span<double>> statistics() const;  // of this rank, by slot
  std::span<double> squares() const;                  // of this rank, by block of all buckets; empty without squares
  // Sums of squares of values, then of steps, by block; empty without norms. The same for all ranks once reduced.
  std::span<double> norms() const;
  std::vector<std::span<double>> shard_sums() const;  // of this rank, by slot; they follow the squares
  // Makes the squares and norms of the last step zero; the reducer then writes the squares of the owned blocks.
  void clear_squares() const;

  // Descriptions for BucketReducer; that of gradients includes the squares of their blocks.
  BucketMemory statistics_memory() const { return doubles(&Offsets::statistics, size_.statistics); }
  BucketMemory squares_memory() const { return doubles(&Offsets::squares, squares_ + size_.shard_sums); }
  BucketMemory norms_memory() const { return doubles(&Offsets::norms, norms_); }
  BucketMemory gradient_memory(std::size_t bucket) const;
  std::byte* gradient(std::size_t bucket, int local_rank) const;  // slot 0

  std::size_t bytes() const;  // of the window and of the mapped gradients of other ranks

 private:
  // In a rank's window.
  struct Offsets {
    std::size_t control_flags, control_blocks, statistics, squares, norms, bytes;
    std::size_t slots;  // of the rank
  };
  Offsets offsets_of(int rank) const;
  std::size_t slots_of(int rank) const;
  const Offsets& mine() const;
  BucketMemory doubles(std::size_t Offsets::*part, std::size_t count) const;
  std::vector<std::span<double>> slots(const BucketMemory& memory) const;
  std::vector<std::span<std::byte>> rows(std::size_t offset) const;

  const Domains& domains_;
  const plan::ParameterStore& store_;
  WorldLayout world_;
  Size size_;
  std::size_t squares_, norms_;                  // doubles: one, and two, for each block of all buckets, or 0
  std::vector<Offsets> offsets_;                 // by local rank
  std::vector<std::span<std::byte>> windows_;    // by local rank
  std::vector<std::span<std::byte>> gradients_;  // by local rank: all slots of all buckets
};

}  // namespace lockstep::parallel
