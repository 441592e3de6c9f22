// Sums, counts and words of a training step that travel in the control block: what a rank says about its step (number,
// samples, position, rate), and what all ranks' words and sums say together. One thread makes and reads them, another
// (or the same) calls progress(); alike on all ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "lockstep/parallel/control/control_block.h"

namespace lockstep::parallel {

// Sums of the control block: these, then the counts of the model function.
enum ControlSum : std::size_t { kLossSum, kWeightSum, kSampleSum, kFirstCount };
// Words of the control block. Of requests, every rank learns which bits any rank has set (train/run/requests.h).
enum ControlWord : std::size_t {
  kStepWord,
  kSamplesWord,
  kPositionWord,
  kRateWord,  // the learning rate's bits
  kDriverWord,
  kTimeWord,
  kRequestWord,
  kLossWord,    // this rank's sum of losses
  kDamageWord,  // 0, or which block of this rank's memory is damaged
  kDigestWord,  // digest of the parameters that this rank writes, where copies are compared
  kOwnWord,     // digest of the parameters that every rank holds for itself
  kControlWords
};

// The place in the data set where a step begins, in one word: a sample of an epoch, both from 0.
constexpr std::uint64_t position_word(std::int64_t epoch, std::int64_t sample) {
  return static_cast<std::uint64_t>(epoch) << 40 | static_cast<std::uint64_t>(sample);
}

// The same on all ranks in a step, but for `requests`.
struct StepStart {
  std::uint64_t samples = 0, position = 0;  // position: see position_word()
  std::uint64_t driver = 0;                 // rank 0's word about the driver of communication, which all ranks read
  std::uint64_t requests = 0;               // of this rank
  double learning_rate = 0;
  std::int64_t update = 1;  // its number, from 1
};

// What a rank says about its memory: kDamageWord, kDigestWord, kOwnWord.
struct MemoryWords {
  std::uint64_t damage = 0, digest = 0, own = 0;
};

class StepSums {
 public:
  // `counts`: sums beside those of ControlSum.
  static ControlSize size(std::size_t counts) { return {kFirstCount + counts, kControlWords}; }
  // The arguments are ControlBlock's.
  StepSums(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
           const WorldLayout& world, std::size_t counts);

  void begin(const StepStart& start);
  std::span<double> shard() { return control_.shard(); }  // the current shard's sums, zero at first
  void count_shard();                                     // its sums are complete: they enter this rank's weight
  void tell(const MemoryWords& words);                    // before the last end_shard()
  // After count_shard(): the current shard ends `seconds` after the step's begin. After the last one the block leaves.
  void end_shard(double seconds);
  double local_weight() const { return local_weight_; }

  bool complete() const { return control_.complete(); }
  // Once complete: adds up. Throws Error where ranks are not in the same step, or samples have no weight.
  void add_up();

  // --- of the last step that was added up
  std::span<const double> sums() const { return control_.sums(); }
  std::uint64_t requests() const { return control_.any(kRequestWord); }        // of any rank
  std::uint64_t root_driver() const { return control_.word(0, kDriverWord); }  // rank 0's
  double loss_of(int rank) const { return std::bit_cast<double>(control_.word(rank, kLossWord)); }
  MemoryWords memory_of(int rank) const {
    return {control_.word(rank, kDamageWord), control_.word(rank, kDigestWord), control_.word(rank, kOwnWord)};
  }
  // The rank whose last forward pass ended last, counted from the step's begin, and by how much the fastest was faster.
  struct Slowest {
    int rank = 0;
    double lead = 0;  // seconds
  };
  Slowest slowest() const;
  int ranks() const { return ranks_; }

  // --- of the thread that drives
  bool progress() { return control_.progress(); }

 private:
  int ranks_;
  ControlBlock control_;
  double local_weight_ = 0, local_loss_ = 0;  // of this rank's shards in the step
};

}  // namespace lockstep::parallel
