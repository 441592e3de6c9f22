// Lowers the learning rate when the loss of evaluations stops falling, as torch's ReduceLROnPlateau does with its mode
// "min" and a relative threshold; below a negative loss PyTorch expects no progress, here the threshold is relative to
// its size. The result depends on the sequence of losses alone. One thread.
#pragma once

#include <cstdint>
#include <limits>

namespace lockstep::optim {

struct PlateauOptions {
  double factor = 0.1;         // on the rate, in (0, 1)
  std::int64_t patience = 10;  // evaluations without progress that do not lower the rate
  double threshold = 1e-4;     // progress is a loss that is lower than the lowest one by this part of its size
  std::int64_t cooldown = 0;   // evaluations after a lowering that are not counted
};

class Plateau {
 public:
  struct State {
    double lowest = std::numeric_limits<double>::infinity();
    double factor = 1;                            // the product of all lowerings
    std::int64_t without_progress = 0, rest = 0;  // evaluations: counted ones, and what is left of the cooldown
  };

  // `least` is the smallest value of factor(). Throws Error for an option out of its range.
  explicit Plateau(const PlateauOptions& options, double least = 0);

  // Takes the loss of the next evaluation; a NaN is no progress. Returns whether the factor is lower now.
  bool add(double loss);
  double factor() const { return state_.factor; }  // of the learning rate
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  PlateauOptions options_;
  double least_;
  State state_;
};

}  // namespace lockstep::optim
