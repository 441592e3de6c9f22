// Writes the run's metrics: one record every `every` updates, one per epoch, and one per complete evaluation.
#pragma once

#include <chrono>
#include <string>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class WriteMetrics : public Callback {
 public:
  // All arguments must outlive this object; `every` 0: no records of updates.
  WriteMetrics(const Trainer& trainer, const RunRecord& record, RunFiles& files, std::int64_t every)
      : trainer_(trainer), record_(record), files_(files), every_(every) {}
  void begin_run(std::int64_t /*step*/) override { began_ = Clock::now(); }
  void begin_epoch(const EpochEvent& event) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void end_epoch(const EpochEvent& event, Orders& orders) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void rolled_back(std::int64_t step) override;

 private:
  using Clock = std::chrono::steady_clock;
  MetricsRecord record_of(const Totals& totals, double learning_rate, double samples_per_second) const;
  void write_step(const StepEvent& event);
  void write_epoch(std::int64_t step, std::int64_t epoch, double learning_rate);
  void begin_epoch_clock();
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  const Trainer& trainer_;
  const RunRecord& record_;
  RunFiles& files_;
  std::int64_t every_;
  Clock::time_point began_ = Clock::now();  // training
  double logged_at_ = 0, epoch_began_ = 0;  // seconds since then
  std::int64_t logged_samples_ = 0,
               epoch_samples_ = 0;  // samples since logged_at_; of the epoch, since the start or the last rollback
};

}  // namespace lockstep::train
