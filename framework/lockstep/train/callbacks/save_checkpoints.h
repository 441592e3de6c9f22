// Orders checkpoints at intervals of epochs, updates and minutes (of rank 0's clock). If an evaluation is due after the
// same update, the evaluation comes first, so that a run resumed from the checkpoint need not make it up.
#pragma once

#include <chrono>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_record.h"

namespace lockstep::train {

class SaveCheckpoints : public Callback {
 public:
  using Clock = std::chrono::steady_clock;
  struct Every {
    std::int64_t epochs = 0, updates = 0;  // 0: never
    double minutes = 0;                    // 0: never; only rank 0's value counts
  };
  // `began` is the start time of the run; `record` must outlive this object.
  SaveCheckpoints(const Every& every, const RunRecord& record, Clock::time_point began)
      : every_(every), record_(record), saved_at_(began) {}

  std::uint64_t requests() override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void end_epoch(const EpochEvent& event, Orders& orders) override;
  void after_checkpoint(const CheckpointEvent& /*event*/) override { saved_at_ = Clock::now(); }
  void rolled_back(std::int64_t /*step*/) override { after_evaluation_ = false; }

 private:
  static void answer(std::uint64_t asked, Orders& orders);
  Every every_;
  const RunRecord& record_;
  Clock::time_point saved_at_;
  bool after_evaluation_ = false;  // true: a checkpoint is due at the end of the epoch, after its evaluation
};

}  // namespace lockstep::train
