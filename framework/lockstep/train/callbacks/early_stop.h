// Ends the run once evaluations stop improving: after `patience` evaluations in a row whose loss is not below the
// lowest one before. The totals of an evaluation are the same on all ranks, so they decide alike. A resumed run begins
// to count anew.
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
