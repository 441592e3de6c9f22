// Watches the norm of the summed gradient, of the whole and of every parameter, by the sums of squares that clipping
// takes too: an absolute limit, and a multiple of the norm's running mean. Parameters that share a block of
// BucketReducer::kBlock elements are seen together. What it finds depends on the canonical sums alone, so it is the
// same on all ranks and at any number of them. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

struct GradientGuardOptions {
  double norm = 0;    // largest norm; 0: any
  double spike = 0;   // largest multiple of the running mean; 0: any
  double warn = 0.5;  // part of a limit that is worth a line in the log
};

struct GradientFinding {
  enum class Level : std::uint8_t { Fine, Warn, Act };
  Level level = Level::Fine;
  bool whole = true;  // the norm is of all parameters together, and most of it of `parameter`
  std::string parameter = {};
  double norm = 0, limit = 0;
  bool finite = true;
  std::string str() const;
};

class GradientGuard {
 public:
  GradientGuard(const plan::ParameterStore& store, const GradientGuardOptions& options);
  // `squares` by block of all buckets, of sums that `scale` turns into the gradient.
  const GradientFinding& look(std::span<const double> squares, double scale);
  void accept();  // the step is applied: its norms enter the means
  // Means and the number of steps in them, for checkpoints.
  std::span<double> state() { return state_; }

 private:
  struct Watched {
    std::string name;
    std::size_t first_block, end_block;
  };
  void judge(std::size_t watched, double limit);
  std::size_t largest() const;

  GradientGuardOptions options_;
  std::vector<Watched> watched_;  // the whole first
  std::vector<double> norms_;
  std::vector<double> state_;  // steps, then the mean norm of each
  GradientFinding finding_;
  double worst_ = 0;
};

}  // namespace lockstep::parallel
