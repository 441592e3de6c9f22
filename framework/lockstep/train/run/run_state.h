// The state of a run that trains, in and out: checkpoints of weights, position, record and the states of callbacks; a
// resume, and the way back to the newest checkpoint. All ranks make the same calls; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/run/checkpoints.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

class RunState {
 public:
  // The parts of `run` and `callbacks` must outlive this object; `settings` are those of checkpoints.
  RunState(const RunParts& run, CallbackList& callbacks, Checkpoints::Settings settings);

  Checkpoints& checkpoints() { return checkpoints_; }
  const Checkpoints& checkpoints() const { return checkpoints_; }

  // Resumes as Resumption::resume(). Returns the step; empty: the run begins at step 0.
  std::optional<std::int64_t> resume(const std::string& from);
  // Gives callbacks their states in the checkpoint that was loaded.
  void load_callbacks();
  // Writes a checkpoint, unless damaged memory makes the run go back to the newest one.
  void save();
  // Goes back to the newest checkpoint, as a new start with --resume auto does; the program's present loop continues
  // with the batches after the checkpoint's position. Returns false if there is no checkpoint yet.
  bool roll_back();

 private:
  RunParts run_;
  CallbackList& callbacks_;
  Checkpoints checkpoints_;
};

}  // namespace lockstep::train
