// Handles memory that has changed by itself: repairs it from a copy, goes back to a checkpoint, or stops. All ranks
// decide the same; functions are collective.
#pragma once

#include <functional>
#include <string>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/guard/suspects.h"
#include "lockstep/train/prepare/guards.h"
#include "lockstep/train/state/trainer_state.h"

namespace lockstep::train {

class MemoryRecovery {
 public:
  // All references must outlive this object.
  MemoryRecovery(const comm::Communicator& comm, OnMismatch on_mismatch, parallel::GradientEngine& engine,
                 const TrainerState& state, Suspects& suspects)
      : comm_(comm), on_mismatch_(on_mismatch), engine_(&engine), state_(state), suspects_(suspects) {}

  // Registers the function that loads a trusted state on all ranks, or returns false if there is none.
  void on_roll_back(std::function<bool()> roll_back) { roll_back_ = std::move(roll_back); }

  // Handles damage that a step found, in the `attempts`-th attempt in a row. Returns true to run the step again, false
  // after a rollback; throws UntrustedError if both are impossible, as verify() does.
  bool recover(int attempts);
  // Returns true if memory is as it was written or is repaired now; false after a rollback.
  bool verify();
  void require_intact();  // as verify(), but throws UntrustedError if memory cannot be repaired

 private:
  bool is_repaired(std::string& text);
  void roll_back_or_throw(std::string text);

  const comm::Communicator& comm_;
  OnMismatch on_mismatch_;
  parallel::GradientEngine* engine_;
  const TrainerState& state_;
  Suspects& suspects_;
  std::function<bool()> roll_back_;
  std::int64_t furthest_ = 0;  // latest update from which the run was rolled back
  int rolled_back_ = 0;        // number of rollbacks since then
};

}  // namespace lockstep::train
