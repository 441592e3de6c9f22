// Sums and words of a training step that travel in the control block: a rank's description of its step (number,
// samples, position, rate), and the results over all ranks. One thread makes and reads them; the same or another thread
// calls progress(). Alike on all ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "lockstep/parallel/control/control_block.h"

namespace lockstep::parallel {

// The sums of the control block; others follow: of metrics and of callbacks.
enum ControlSum : std::size_t { kLossSum, kWeightSum, kSampleSum, kOtherSums };
// The words of the control block. For requests, every rank learns the bits that at least one rank has set
// (train/monitor/requests.h).
enum ControlWord : std::size_t {
  kStepWord,
  kSamplesWord,
  kPositionWord,
  kRateWord,  // the learning rate's bits
  kDriverWord,
  kTimeWord,
  kRequestWord,
  kLossWord,     // this rank's sum of losses
  kDamageWord,   // 0, or the damaged block of this rank's memory
  kDigestWord,   // digest of the parameters that this rank writes, where copies are compared
  kOwnWord,      // digest of the parameters of which every rank has a private copy
  kBetweenWord,  // what the rank does between two steps, for StepSums::post(); 0 in a step
  kControlWords
};

// The position in the data set at which a step begins, as one word: epoch and sample, both from 0.
constexpr std::uint64_t position_word(std::int64_t epoch, std::int64_t sample) {
  return static_cast<std::uint64_t>(epoch) << 40 | static_cast<std::uint64_t>(sample);
}

// The begin of a step; equal on all ranks, except for `requests`.
struct StepStart {
  std::uint64_t samples = 0, position = 0;  // position: see position_word()
  std::uint64_t driver = 0;                 // rank 0 tells all ranks here how communication is driven
  std::uint64_t requests = 0;               // of this rank
  double learning_rate = 0;
  std::int64_t update = 1;  // number of the update, from 1
};

// The words about a rank's memory: kDamageWord, kDigestWord, kOwnWord.
struct MemoryWords {
  std::uint64_t damage = 0, digest = 0, own = 0;
};

// How an error describes the words of StepSums::post().
struct BetweenSteps {
  std::string_view meaning = "the call between two steps", advice = "";
  WordText* text = decimal;
};

class StepSums {
 public:
  // `others`: number of sums beside those of ControlSum.
  static ControlSize size(std::size_t others) { return {kOtherSums + others, kControlWords}; }
  // The arguments are ControlBlock's.
  StepSums(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
           const WorldLayout& world, std::size_t others, const BetweenSteps& between = {});

  void begin(const StepStart& start);
  std::span<double> shard() { return control_.shard(); }  // the current shard's sums, zero at first
  void count_shard();                   // the shard's sums are complete: adds them to this rank's weight and loss
  void tell(const MemoryWords& words);  // before the last end_shard()
  // After count_shard(): ends the current shard, `seconds` after the begin of the step. The last shard sends the block.
  void end_shard(double seconds);
  double local_weight() const { return local_weight_; }

  bool complete() const { return control_.complete(); }
  // Adds up, once complete. Throws Error if ranks are not in the same step, or if samples have no weight.
  void add_up();
  // Sends `word`, which is not 0, between two steps; the results of the last step stay. Once complete, check_between()
  // throws Error unless all ranks have sent the same word. In a rank that is in a step, add_up() throws.
  void post(std::uint64_t word);
  void check_between() const;

  // --- of the last step that was added up
  std::span<const double> sums() const { return control_.sums(); }
  std::uint64_t requests() const { return control_.any(kRequestWord); }        // of any rank
  std::uint64_t root_driver() const { return control_.word(0, kDriverWord); }  // rank 0's
  double loss_of(int rank) const { return std::bit_cast<double>(control_.word(rank, kLossWord)); }
  MemoryWords memory_of(int rank) const {
    return {control_.word(rank, kDamageWord), control_.word(rank, kDigestWord), control_.word(rank, kOwnWord)};
  }
  // The rank whose last forward pass took longest, counted from the begin of the step, and its time minus that of the
  // fastest rank.
  struct Slowest {
    int rank = 0;
    double lead = 0;  // seconds
  };
  Slowest slowest() const;
  int ranks() const { return ranks_; }

  // --- for the thread that drives
  bool progress() { return control_.progress(); }

 private:
  int ranks_;
  BetweenSteps between_;
  ControlBlock control_;
  double local_weight_ = 0, local_loss_ = 0;  // of this rank's shards in the step
};

}  // namespace lockstep::parallel
