// Sums losses, metrics and samples of the present epoch in the run's record, which checkpoints contain. Updates that a
// guard skipped are not in the sums.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_record.h"

namespace lockstep::train {

class EpochMeter : public Callback {
 public:
  // `record` must outlive this object.
  EpochMeter(RunRecord& record, std::vector<MetricRule> rules) : record_(record), rules_(std::move(rules)) {}
  void begin_run(std::int64_t /*step*/) override { record_.epoch.take_rules(rules_); }
  void begin_epoch(const EpochEvent& event) override;
  void after_step(const StepEvent& event, Orders& orders) override;

 private:
  void enter(std::int64_t epoch);  // from 0
  RunRecord& record_;
  std::vector<MetricRule> rules_;
};

}  // namespace lockstep::train
