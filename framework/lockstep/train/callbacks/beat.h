// Tells the watchdog the phase of this rank outside of steps and evaluations, which report their phases themselves.
#pragma once

#include "lockstep/core/heartbeat.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class Beat : public Callback {
 public:
  explicit Beat(Heartbeat& heartbeat) : heartbeat_(heartbeat) {}  // it must outlive this object
  void before_batch() override { heartbeat_.enter(Heartbeat::Phase::Loading); }
  void before_checkpoint(std::int64_t /*step*/) override { heartbeat_.enter(Heartbeat::Phase::Saving); }
  void after_checkpoint(const CheckpointEvent& /*event*/) override { heartbeat_.enter(Heartbeat::Phase::Outside); }

 private:
  Heartbeat& heartbeat_;
};

}  // namespace lockstep::train
