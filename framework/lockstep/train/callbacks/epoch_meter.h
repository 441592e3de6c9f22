// Sums losses, counts and samples of the present epoch in the run's record, which checkpoints contain.
#pragma once

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_record.h"

namespace lockstep::train {

class EpochMeter : public Callback {
 public:
  explicit EpochMeter(RunRecord& record) : record_(record) {}  // it must outlive this object
  void begin_epoch(const EpochEvent& event) override;
  void after_step(const StepEvent& event, Orders& orders) override;

 private:
  void enter(std::int64_t epoch);  // from 0
  RunRecord& record_;
};

}  // namespace lockstep::train
