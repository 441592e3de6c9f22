// The callbacks of a run, in the order in which each of their functions is called:
//
//   1. report   Beat, EpochMeter, TraceSteps, LogEvents, ShowProgress, LogRankLoss, LogHashes, ProfileSteps,
//               WriteMetrics, WriteDllogger, WriteTensorboard, WriteFacts
//   2. program  the callbacks of Session::add(), in the order of the calls
//   3. decide   AverageWeights, Evaluate, LowerRate, EarlyStop, FindRate, AnswerSignals, TimeLimit, SaveCheckpoints
//
// So when a program's callback is called, the step's line and record are written, and its changes are part of the
// step's checkpoint. The list divides the control block: each callback sees only its own sums and votes. One thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class CallbackList {
 public:
  enum class Stage : std::uint8_t { Report, Program, Decide };

  // Adds a callback after those of the same stage. A callback that needs sums or votes must be added before the trainer
  // is made. Throws Error if there are more votes than bits, and for a state whose name another callback has.
  void add(Stage stage, std::unique_ptr<Callback> callback);

  std::size_t sums() const { return sums_; }  // number of f64 values per step of all callbacks together
  bool needs_settled_weights() const { return settled_weights_; }
  bool changes_batches() const { return changes_batches_; }
  std::size_t size() const { return entries_.size(); }
  // Describes type and needs of each callback, one per line: equal on ranks that have made the same callbacks.
  std::string description() const;

  // Return this rank's requests, and its votes for the step that begins, as bits of the control block's request word;
  // `sums` are the sums of all callbacks, zero at first.
  std::uint64_t requests() const;
  std::uint64_t vote(std::span<double> sums) const;

  // Calls after_step() of each callback; `bits` is the request word, and `sums` are the sums, of all ranks.
  Orders after_step(StepEvent event, std::uint64_t bits, std::span<const double> sums) const;
  // Return the states of the callbacks that declare one, and give them back. load_states() returns a line for each
  // callback without a state in `saved`, and for each state without a callback; it throws Error naming the callback
  // whose state cannot be used.
  CallbackStates save_states() const;
  std::vector<std::string> load_states(const CallbackStates& saved) const;
  // Calls visit(callback) for each callback, in order.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(*entry.callback);
  }

 private:
  struct Entry {
    Stage stage;
    std::unique_ptr<Callback> callback;
    std::size_t first_sum;
    int first_bit;
  };
  void check_state(const Callback& callback) const;

  std::vector<Entry> entries_;
  std::size_t sums_ = 0;
  int next_bit_ = 0;
  std::size_t states_ = 0;
  bool settled_weights_ = false, changes_batches_ = false;
};

}  // namespace lockstep::train
