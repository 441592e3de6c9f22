// The small block that every rank learns from every other once per step: f64 sums (loss, weights, counts), added over
// shards by the reduction tree, and u64 words per rank (step, position, requests). It travels beside the first bucket
// and is never rounded. In a domain it goes through shared memory, between domains from leader to leader. The thread
// that computes makes and reads blocks, another (or the same) drives; alike on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/parallel/control/control_exchange.h"

namespace lockstep::parallel {

// How a word is written in a message.
using WordText = std::string(std::uint64_t word);
std::string decimal(std::uint64_t word);

// Adds up the open partial sums of all ranks, in the tree's order.
class PartialSums {
 public:
  PartialSums(const WorldLayout& world, std::size_t sums);
  // Those of one rank after the other, as u64 bits.
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
  // Of the domain's first rank: memory for the blocks of all ranks, seen by all ranks of the domain.
  static std::size_t bytes(const WorldLayout& world, const ControlSize& size) {
    return ControlMemory::bytes(world, size);
  }

  // `transport`, `flags` (of kFlags) and `blocks` (zero at first) outlive the block and serve nothing else.
  ControlBlock(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
               const WorldLayout& world, const ControlSize& size);

  // --- of the thread that computes
  void begin();               // a new block
  std::span<double> shard();  // the current shard's sums, zero at first
  void end_shard();           // they are complete; after the last shard the block leaves for the other ranks
  std::span<std::uint64_t> words() { return my_words_; }  // before the last end_shard()
  bool complete() const { return exchange_.complete(step_); }
  void total();  // once complete, before what follows
  std::span<const double> sums() const { return sums_.totals(); }
  std::uint64_t word(int rank, std::size_t i) const { return exchange_.block(rank, step_)[i]; }
  std::uint64_t any(std::size_t i) const;  // bits of the word that any rank has set
  // Throws Error naming `meaning`, the first rank whose word differs from this rank's, and both as `text` writes them.
  void check_same(std::size_t word, std::string_view meaning, WordText* text = decimal) const;

  // --- of the thread that drives
  bool progress() { return exchange_.progress(); }  // whether something moved

 private:
  std::span<double> slot(int s);
  void post();

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
