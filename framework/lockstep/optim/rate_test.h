// The learning-rate range test (Smith (2017), "Cyclical learning rates for training neural networks", section 3.3): a
// short training whose rate grows by the same factor from step to step, until the loss diverges. The rate at which the
// loss falls most steeply is one to train with. Plain numbers, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::optim {

class RateTest {
 public:
  struct Row {
    double rate, loss;
    double smoothed = 0;  // mean of the losses around this row, with weights that fall linearly to both sides
  };
  struct Result {
    std::vector<Row> rows{};                // the steps; without a last loss that is not finite
    bool diverged = false;                  // the test ended before its last step
    std::optional<std::size_t> steepest{};  // row at which the smoothed loss falls most steeply over log(rate); empty:
                                            // it never falls
    std::size_t lowest = 0;                 // row of the lowest smoothed loss
  };

  // A test of `steps` steps, at least 2, from rate `low` to rate `high`, with 0 < low < high. Throws Error otherwise.
  RateTest(double low, double high, std::int64_t steps);

  double next_rate() const;  // of the next step
  void add(double loss);     // the loss of the step with next_rate()
  // All steps are done, or the loss diverges: it is not finite, or its running mean (a tenth of each new loss) is above
  // four times the lowest one. Below zero, where a factor says nothing, the mean may rise by three times the larger of
  // the first and the lowest value.
  bool is_over() const { return diverged_ || rows_.size() >= steps_; }
  bool diverged() const { return diverged_; }
  Result result() const;

 private:
  double low_, high_;
  std::size_t steps_;
  std::vector<Row> rows_;
  double mean_ = 0, lowest_mean_ = 0;
  bool diverged_ = false;
};

}  // namespace lockstep::optim
