// The small block that every rank receives from every other rank once per step: f64 sums (loss, weights, metrics),
// added over shards by the reduction tree, and u64 words per rank (step, position, requests). It travels beside the
// first bucket and is never rounded: in a domain through shared memory, between domains from leader to leader. The
// computing thread makes and reads blocks; the same or another thread drives the exchange. Alike on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/parallel/control/control_exchange.h"

namespace lockstep::parallel {

// Formats a word for a message.
using WordText = std::string(std::uint64_t word);
std::string decimal(std::uint64_t word);

// Adds up the open partial sums of all ranks, in the tree's order.
class PartialSums {
 public:
  PartialSums(const WorldLayout& world, std::size_t sums);
  // begin(), then append() for each rank in order, with the bits of its sums, then add_up().
  void begin() { filled_ = 0; }
  void append(std::span<const std::uint64_t> bits);
  void add_up();
  std::span<const double> totals() const { return totals_; }

 private:
  std::vector<TreeMerge> merges_;
  std::vector<double> values_, totals_;
  std::vector<const double*> operands_;  // in values_, one for each partial sum
  std::size_t filled_ = 0;
};

class ControlBlock {
 public:
  static constexpr int kFlags = ControlExchange::kFlags;
  // Bytes for the blocks of all ranks. The first rank of the domain provides this memory; all ranks of the domain see
  // it.
  static std::size_t bytes(const WorldLayout& world, const ControlSize& size) {
    return ControlMemory::bytes(world, size);
  }

  // `transport`, `flags` (of kFlags) and `blocks` (zero at first) outlive the block and serve nothing else.
  ControlBlock(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
               const WorldLayout& world, const ControlSize& size);

  // --- for the thread that computes
  void begin();               // begins a new block
  std::span<double> shard();  // the current shard's sums, zero at first
  void end_shard();           // the sums are complete; after the last shard the block is sent
  std::span<std::uint64_t> words() { return my_words_; }  // before the last end_shard()
  // Sends the words once more, between two blocks. Until the next block, sums() are those of the last one; total() must
  // not be called.
  void post();
  bool complete() const { return exchange_.complete(step_); }
  void total();  // adds up; once complete, before the calls below
  std::span<const double> sums() const { return sums_.totals(); }
  std::uint64_t word(int rank, std::size_t i) const { return exchange_.block(rank, step_)[i]; }
  std::uint64_t any(std::size_t i) const;  // the bits of this word that at least one rank has set
  // Throws Error naming `meaning`, the first rank whose word differs from this rank's, and both as `text` writes them;
  // `advice` ends the message.
  void check_same(std::size_t word, std::string_view meaning, WordText* text = decimal,
                  std::string_view advice = "") const;

  // --- for the thread that drives
  bool progress() { return exchange_.progress(); }  // whether something moved

 private:
  std::span<double> slot(int s);

  int rank_;
  ControlSize size_;
  ShardWalk walk_;
  ControlExchange exchange_;
  PartialSums sums_;
  std::vector<std::uint64_t> my_words_;
  std::vector<double> slots_;  // of this rank's shards
  std::uint32_t step_ = 0;
};

}  // namespace lockstep::parallel
