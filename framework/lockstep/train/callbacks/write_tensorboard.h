// Writes to TensorBoard's file what is no record: the options of the run as a text, and, at the end of each epoch, a
// histogram of the weights of each parameter. Running statistics and parameters of more than kLargest elements are left
// out: a histogram reads a copy in f64. All ranks must have this callback, because late updates are settled together.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class WriteTensorboard : public Callback {
 public:
  static constexpr std::int64_t kLargest = std::int64_t{1} << 24;  // elements; a copy in f64 takes 128 MiB

  // All references must outlive this object; `parameters`: the options of the run.
  WriteTensorboard(Trainer& trainer, RunFiles& files, nlohmann::ordered_json parameters)
      : trainer_(trainer), files_(files), parameters_(std::move(parameters)) {}
  void begin_run(std::int64_t step) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void end_epoch(const EpochEvent& event, Orders& orders) override;

 private:
  void write_weights(std::int64_t step);

  Trainer& trainer_;
  RunFiles& files_;
  nlohmann::ordered_json parameters_;
};

}  // namespace lockstep::train
