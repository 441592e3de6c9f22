// Tells the watchdog in which phase a rank is between its steps and evaluations, which beat by themselves.
#pragma once

#include "lockstep/core/heartbeat.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class Beat : public Callback {
 public:
  explicit Beat(Heartbeat& heartbeat) : heartbeat_(heartbeat) {}  // which outlives this
  void before_batch() override { heartbeat_.enter(Heartbeat::Phase::Loading); }
  void before_checkpoint(std::int64_t /*step*/) override { heartbeat_.enter(Heartbeat::Phase::Saving); }
  void after_checkpoint(const CheckpointEvent& /*event*/) override { heartbeat_.enter(Heartbeat::Phase::Outside); }

 private:
  Heartbeat& heartbeat_;
};

}  // namespace lockstep::train
