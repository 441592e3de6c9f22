// What a trainer does where memory is not what was written: repairs it from a copy, goes back to a checkpoint, or
// stops. Alike on all ranks; functions are collective.
#pragma once

#include <functional>
#include <string>

#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/guards.h"
#include "lockstep/train/step/suspects.h"
#include "lockstep/train/step/trainer_state.h"

namespace lockstep::train {

class MemoryRecovery {
 public:
  // All outlive this.
  MemoryRecovery(const comm::Communicator& comm, OnMismatch on_mismatch, parallel::GradientEngine& engine,
                 const TrainerState& state, Suspects& suspects)
      : comm_(comm), on_mismatch_(on_mismatch), engine_(&engine), state_(state), suspects_(suspects) {}

  // Loads a state that can be trusted, on all ranks; false if there is none.
  void on_roll_back(std::function<bool()> roll_back) { roll_back_ = std::move(roll_back); }

  // After a step that found damage, the `attempts`-th in a row: true, it is to be run again; false, rolled back. Throws
  // UntrustedError if neither can be, as verify() does.
  bool recover(int attempts);
  // True: memory is as it was written, or has been repaired; false: rolled back.
  bool verify();
  void require_intact();  // as verify(), but what cannot be repaired is thrown

 private:
  bool is_repaired(std::string& text);
  void roll_back_or_throw(std::string text);

  const comm::Communicator& comm_;
  OnMismatch on_mismatch_;
  parallel::GradientEngine* engine_;
  const TrainerState& state_;
  Suspects& suspects_;
  std::function<bool()> roll_back_;
  std::int64_t furthest_ = 0;  // update from which memory was rolled back
  int rolled_back_ = 0;        // times since then
};

}  // namespace lockstep::train
