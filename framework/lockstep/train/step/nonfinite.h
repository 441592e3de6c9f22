// Where a value that is not finite comes up first, found by running plans again and looking at what every step leaves.
#pragma once

#include <string>

#include "lockstep/plan/plan.h"

namespace lockstep::train {

class NonFiniteFinder : public plan::PlanHooks {
 public:
  explicit NonFiniteFinder(const plan::Plan& plan) : plan_(plan) {}
  void poll() override;
  const std::string& where() const { return where_; }  // "layer1.0.conv1 (conv2d)"; empty: nowhere

 private:
  const plan::Plan& plan_;
  std::size_t at_ = 0;  // step of the plan
  std::string where_;
};

}  // namespace lockstep::train
