// Ends the run after `patience` evaluations in a row whose loss is not below the lowest earlier one. The totals of an
// evaluation are equal on all ranks, so all ranks decide the same. A resumed run starts to count again.
#pragma once

#include <limits>

#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class EarlyStop : public Callback {
 public:
  explicit EarlyStop(std::int64_t patience) : patience_(patience) {}  // evaluations; 0: never
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  std::int64_t patience_, without_progress_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace lockstep::train
