// Orders an evaluation every `every` epochs and at the end of the run, keeps the result in the run's record, and logs
// it. An evaluation that a request ended early, or that a stopped run did not reach, stays due: the resumed run makes
// it up.
#pragma once

#include <string>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_record.h"

namespace lockstep::train {

// Returns "loss 0.0334, accuracy 98.80% of 2000 samples".
std::string evaluation_text(const Totals& totals);

class Evaluate : public Callback {
 public:
  Evaluate(RunRecord& record, std::int64_t every) : record_(record), every_(every) {}  // epochs; 0: never
  void make_up(const EpochEvent& event, Orders& orders) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void end_epoch(const EpochEvent& event, Orders& orders) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  bool is_due(std::int64_t epoch, bool whole, bool run_ends) const;
  RunRecord& record_;
  std::int64_t every_;
};

}  // namespace lockstep::train
