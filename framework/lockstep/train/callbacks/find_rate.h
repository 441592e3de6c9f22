// A learning-rate range test (--find-lr; optim/rate_test.h) in place of a training: sets the rate of each step, ends
// the run when the loss diverges, and leaves a table on rank 0's console and in the output folder. The loss of a step
// is that of all ranks, so all ranks set the same rates and end together.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "lockstep/optim/rate_test.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class FindRate : public Callback {
 public:
  struct Run {
    std::function<void(double rate)> set_rate;  // takes the rate of the next step
    std::function<void()> end;                  // ends the run after this step
    // Writes the texts that `make` returns to files of the output folder, by their names, on one rank; an error, also
    // of `make`, is one of all ranks. Collective.
    std::function<void(const std::function<std::map<std::string, std::string>()>& make)> write;
  };
  // `lr_per_rate`: --lr for a rate of 1; not 1 with --scale-lr.
  FindRate(const optim::RateTest& test, double lr_per_rate, Run run)
      : test_(test), lr_per_rate_(lr_per_rate), run_(std::move(run)) {}
  void begin_run(std::int64_t step) override;
  void after_step(const StepEvent& event, Orders& orders) override;
  void end_run(const RunEnd& end) override;

 private:
  optim::RateTest test_;
  double lr_per_rate_;
  Run run_;
};

// The texts of a test's result: a table for people, comma-separated values with a header line, and a JSON object.
std::string rate_table(const optim::RateTest::Result& result, double lr_per_rate);
std::string rate_csv(const optim::RateTest::Result& result);
std::string rate_json(const optim::RateTest::Result& result, double lr_per_rate);

}  // namespace lockstep::train
