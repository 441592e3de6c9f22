// A function that hears of every gradient of a run.
#pragma once

#include <functional>
#include <utility>

#include "lockstep/plan/plan.h"

namespace lockstep {

class GradientHook : public plan::PlanHooks {
 public:
  explicit GradientHook(std::function<void(const Parameter*)> hear) : hear_(std::move(hear)) {}
  void retired(const Parameter* parameter) override { hear_(parameter); }

 private:
  std::function<void(const Parameter*)> hear_;
};

}  // namespace lockstep
