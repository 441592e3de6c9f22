// Finds the first value that is not finite: runs plans again and checks the outputs of every step. Each step is a beat,
// for a watchdog to see.
#pragma once

#include <string>

#include "lockstep/core/heartbeat.h"
#include "lockstep/plan/plan.h"

namespace lockstep::train {

class NonFiniteFinder : public plan::PlanHooks {
 public:
  // Both must outlive this object.
  NonFiniteFinder(const plan::Plan& plan, Heartbeat& heartbeat) : plan_(plan), heartbeat_(heartbeat) {}
  void poll() override;
  const std::string& where() const { return where_; }  // "layer1.0.conv1 (conv2d)"; empty: all values are finite

 private:
  const plan::Plan& plan_;
  Heartbeat& heartbeat_;
  std::size_t at_ = 0;  // index of the plan's present step
  std::string where_;
};

}  // namespace lockstep::train
