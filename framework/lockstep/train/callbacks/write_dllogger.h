// Writes the run's records in the form of NVIDIA's DLLogger (train/report/dllogger.h), with the names of metrics that
// NVIDIA's own training programs use: one record every `every` updates, one per epoch and per complete evaluation, and
// one at the end.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class WriteDllogger : public Callback {
 public:
  // All references must outlive this object; `every` 0: no records of updates; `parameters`: those of the run.
  WriteDllogger(const Trainer& trainer, const RunRecord& record, RunFiles& files, std::int64_t every,
                nlohmann::ordered_json parameters)
      : trainer_(trainer), record_(record), files_(files), every_(every), parameters_(std::move(parameters)) {}
  void begin_run(std::int64_t step) override;
  void begin_epoch(const EpochEvent& event) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void end_epoch(const EpochEvent& event, Orders& orders) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;
  void rolled_back(std::int64_t step) override;
  void end_run(const RunEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;
  // Samples since a time.
  struct Meter {
    Clock::time_point since = Clock::now();
    std::int64_t samples = 0;
    double per_second() const;
  };
  void write_step(const StepEvent& event);
  void write_epoch(std::int64_t step, std::int64_t epoch);

  const Trainer& trainer_;
  const RunRecord& record_;
  RunFiles& files_;
  std::int64_t every_;
  nlohmann::ordered_json parameters_, summary_ = nlohmann::ordered_json::object();
  Meter update_, epoch_;
};

}  // namespace lockstep::train
