// The small block that every rank learns from every other once per step: f64 sums (loss, weights, counts), added over
// leaves by the reduction tree, and u64 words per rank (step, position, requests). It travels beside the first bucket
// and is never rounded. In a domain it goes through shared memory, between domains from leader to leader. The thread
// that computes makes and reads blocks, another (or the same) drives; alike on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/transport.h"
#include "lockstep/parallel/tree/domains.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep {

struct ControlSize {
  std::size_t sums = 0, words = 0;
};

class ControlBlock {
 public:
  static constexpr int kFlags = 2;
  // Of the domain's first rank: memory for the blocks of all ranks, seen by all ranks of the domain.
  static std::size_t bytes(const WorldLayout& world, const ControlSize& size);

  // `transport`, `flags` (of kFlags) and `blocks` (zero at first) outlive the block and serve nothing else.
  ControlBlock(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
               const WorldLayout& world, const ControlSize& size);

  // --- of the thread that computes
  void begin();              // a new block
  std::span<double> leaf();  // the current leaf's sums, zero at first
  void end_leaf();           // they are complete; after the last leaf the block leaves for the other ranks
  std::span<std::uint64_t> words() { return my_words_; }  // before the last end_leaf()
  bool complete() const { return flags_.reached(0, kComplete, step_); }
  void total();  // once complete, before what follows
  std::span<const double> sums() const { return totals_; }
  std::uint64_t word(int rank, std::size_t i) const;
  std::uint64_t any(std::size_t i) const;  // bits of the word that any rank has set
  // Throws Error naming the first rank whose word differs from this rank's, `meaning` and both values.
  void check_same(std::size_t word, std::string_view meaning) const;

  // --- of the thread that drives
  bool progress();  // whether something moved

 private:
  enum Flag : int { kPosted, kComplete };

  std::span<double> slot(int s);
  std::span<std::uint64_t> block(int rank, std::uint32_t step) const;
  std::span<std::uint64_t> blocks_of(int domain, std::uint32_t step) const;
  void post();

  Transport& transport_;
  SharedFlags& flags_;
  Domains domains_;
  LeafWalk walk_;
  int rank_, size_;
  ControlSize counts_;
  std::vector<std::vector<TreeNode>> partials_;
  std::vector<TreeMerge> merges_;
  std::vector<std::size_t> first_;   // by rank: where its block begins, in words; domain after domain
  std::span<std::uint64_t> shared_;  // two sets of blocks: a rank may post the next step's while others read
  std::vector<std::uint64_t> my_words_;
  std::vector<double> slots_, totals_;  // mine, by slot; the result
  std::vector<double> values_;          // all ranks' sums, which the operands point into
  std::vector<const double*> operands_;
  std::uint32_t step_ = 0;    // of the thread that computes
  std::uint32_t driven_ = 1;  // of the thread that drives
  bool exchanging_ = false;
  std::vector<Transport::MessageHandle> handles_;
};

// A control block by itself, over messages alone: for what is added up outside training steps. Collective.
class MessageControl {
 public:
  MessageControl(const comm::Communicator& comm, const WorldLayout& world, const ControlSize& size);
  ControlBlock& block() { return *block_; }
  // Until complete, and total(). Throws Error where the communicator is poisoned, and what `work` throws.
  void finish();
  // Called again and again while finish() waits for other ranks: what `work` knows of their failures ends it.
  void while_waiting(std::function<void()> work) { work_ = std::move(work); }

 private:
  comm::Communicator comm_;
  std::vector<std::byte> flag_memory_;
  std::shared_ptr<std::vector<std::byte>> blocks_;  // that messages lie in
  CommTransport transport_;
  std::function<void()> work_ = [] {};
  std::unique_ptr<SharedFlags> flags_;
  std::unique_ptr<ControlBlock> block_;
};

}  // namespace lockstep
