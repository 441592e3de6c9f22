// Traces the work of all ranks in some steps, after the first ones (whose caches are cold), and writes the file of
// --trace.
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
    Trainer& trainer;  // destroyed before this object, because it writes to the trace
    std::string path;
    std::int64_t steps = 5;
  };
  // `file` is rank 0's result of open_trace(). The objects in `settings` must outlive the run.
  TraceSteps(const Settings& settings, io::FileDescriptor file) : settings_(settings), file_(std::move(file)) {}
  void begin_run(std::int64_t step) override { began_at_ = step; }
  void after_step(const StepEvent& event, Orders& orders) override;
  // If the run has fewer steps than requested, writes the steps that it has.
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
