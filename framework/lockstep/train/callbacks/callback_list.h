// The callbacks of a run, in the order in which each of their functions is called:
//
//   1. report   Beat, EpochMeter, TraceSteps, ShowProgress, LogHashes, ProfileSteps, WriteMetrics
//   2. program  those that Session::add() was given, in its order
//   3. decide   Evaluate, EarlyStop, AnswerSignals, TimeLimit, SaveCheckpoints
//
// So a program's callback finds the step's line and record written, and changes made by it are in the step's
// checkpoint. The list shares the control block out: each callback sees its own sums and votes alone. One thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class CallbackList {
 public:
  enum class Stage : std::uint8_t { Report, Program, Decide };

  // Behind those of the same stage. What needs sums or votes is added before the trainer is made. Throws Error where
  // there are more votes than bits.
  void add(Stage stage, std::unique_ptr<Callback> callback);

  std::size_t sums() const { return sums_; }  // f64 numbers per step of all callbacks
  bool needs_settled_weights() const { return settled_weights_; }
  std::size_t size() const { return entries_.size(); }

  // This rank's requests, and its votes for the step that begins, as bits of the control block's request word; `sums`
  // are all callbacks', zero at first.
  std::uint64_t requests() const;
  std::uint64_t vote(std::span<double> sums) const;

  // `bits` is the request word and `sums` the sums, of all ranks.
  Orders after_step(StepEvent event, std::uint64_t bits, std::span<const double> sums) const;
  // Calls visit(callback) for each, in order.
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
  std::vector<Entry> entries_;
  std::size_t sums_ = 0;
  int next_bit_ = 0;
  bool settled_weights_ = false;
};

}  // namespace lockstep::train
