// Notes what all ranks do in some steps, after the first ones that are cold, and writes the file of --trace.
#pragma once

#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/core/trace.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class TraceSteps : public Callback {
 public:
  struct Settings {
    const comm::Communicator& comm;
    Heartbeat& heartbeat;
    Trainer& trainer;  // goes before this, as it notes in the trace
    std::string path;
    std::int64_t steps = 5;
  };
  // `file` is what open_trace() gave rank 0. What `settings` refers to outlives the run.
  TraceSteps(const Settings& settings, io::FileDescriptor file) : settings_(settings), file_(std::move(file)) {}
  void begin_run(std::int64_t step) override { began_at_ = step; }
  void after_step(const StepEvent& event, Orders& orders) override;
  // A run that is shorter than its trace brings what there is.
  void end_run(const RunEnd& end) override;

 private:
  void finish(std::int64_t updates);

  Settings settings_;
  io::FileDescriptor file_;
  Trace trace_;
  std::int64_t began_at_ = 0;  // updates
  bool written_ = false;
};

}  // namespace lockstep::train
