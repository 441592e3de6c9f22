// The small block that every rank learns from every other once per step: f64 sums (loss, weights, counts), added over
// leaves by the reduction tree, and u64 words per rank (step, position, requests). It travels beside the first bucket
// and is never rounded. One thread; collective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/world_layout.h"

namespace lockstep {

class ControlBlock {
 public:
  // The communicator is used for nothing else while the block lives.
  ControlBlock(const comm::Communicator& comm, const WorldLayout& world, std::size_t sums, std::size_t words);

  void begin();              // a new block
  std::span<double> leaf();  // the current leaf's sums, zero at first
  void end_leaf();           // they are complete; after the last leaf the block leaves for the other ranks
  std::span<std::uint64_t> words() { return words_of(rank_); }  // before the last end_leaf()
  bool progress();                                              // true once complete
  void finish();

  // After finish().
  std::span<const double> sums() const { return totals_; }
  std::uint64_t word(int rank, std::size_t i) const;
  // Throws Error naming the first rank whose word differs from this rank's, `meaning` and both values.
  void check_same(std::size_t word, std::string_view meaning) const;

 private:
  std::span<std::uint64_t> words_of(int rank);
  std::span<double> slot(int s);
  void start();
  void total();

  const comm::Communicator& comm_;
  LeafWalk walk_;
  int rank_, size_;
  std::size_t sums_, word_count_;
  std::vector<std::size_t> first_;  // by rank: where its block begins, in 8-byte units
  std::vector<std::vector<TreeNode>> partials_;
  std::vector<TreeMerge> merges_;
  std::vector<std::uint64_t> blocks_;   // all ranks': words, then the slots' sums as bit patterns
  std::vector<double> slots_, totals_;  // mine, by slot; the result
  std::vector<double> values_;          // all ranks' sums, which the operands point into
  std::vector<const double*> operands_;
  std::vector<comm::Request> requests_;
  bool active_ = false;
};

}  // namespace lockstep
