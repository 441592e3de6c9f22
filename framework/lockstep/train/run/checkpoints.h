// The checkpoints that a run writes: copies the state at a step, on all ranks together, and has rank 0 write it while
// training goes on. Alike on all ranks; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Checkpoints {
 public:
  // All outlive this. `keep` is --keep, which the writer understands.
  Checkpoints(const comm::Communicator& comm, Heartbeat& heartbeat, Trainer& trainer, RunFiles& files,
              std::string keep);

  // Memory for a copy, and the writer, on rank 0: at the first save, unless somebody wants to have them earlier.
  void start_writer();
  // No rank waits for another's disk: what fails is rank 0's to report and to try again. `metadata` and `record` are of
  // the step. Returns the seconds that writing the checkpoint before took, on rank 0; 0: not known. Collective.
  double save(const std::string& metadata, const RunRecord& record);
  // Until the copy of the last save is not read any more, which may still be on its way to the disk.
  void claim();
  void finish();  // until the last one is on the disk; collective

  std::int64_t saved_step() const { return saved_step_; }  // the step of the newest checkpoint; -1: there is none
  bool is_unsaved() const { return outdated_ || saved_step_ != trainer_.updates(); }
  void found(std::int64_t step) { saved_step_ = step; }  // the run goes on from the checkpoint of this step
  void outdate() { outdated_ = true; }                   // what is to be saved has changed, though no step came

 private:
  void wait_for_writer();

  const comm::Communicator& comm_;
  Heartbeat& heartbeat_;
  Trainer& trainer_;
  RunFiles& files_;
  std::string keep_;
  std::int64_t saved_step_ = -1;
  bool outdated_ = false;
  // Of rank 0. The writer, which reads the snapshot, goes first.
  std::unique_ptr<checkpoint::StateSnapshot> snapshot_;
  std::unique_ptr<checkpoint::BackgroundWriter> writer_;
};

}  // namespace lockstep::train
