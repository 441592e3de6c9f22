// Tells the watchdog the phase of this rank outside of steps and evaluations, which report their phases themselves.
#pragma once

#include "lockstep/core/heartbeat.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class Beat : public Callback {
 public:
  // `heartbeat` must outlive this object; `loading`: the phase while the rank waits for its next batch.
  Beat(Heartbeat& heartbeat, Heartbeat::Phase loading) : heartbeat_(heartbeat), loading_(loading) {}
  void before_batch() override { heartbeat_.enter(loading_); }
  void before_checkpoint(std::int64_t /*step*/) override { heartbeat_.enter(Heartbeat::Phase::Saving); }
  void after_checkpoint(const CheckpointEvent& /*event*/) override { heartbeat_.enter(Heartbeat::Phase::Outside); }

 private:
  Heartbeat& heartbeat_;
  Heartbeat::Phase loading_;
};

}  // namespace lockstep::train
