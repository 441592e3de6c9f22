// Checks the norm of the summed gradient, of all parameters together and of each parameter, against an absolute limit
// and against a multiple of the running mean of the norm. It reads the sums of squares that clipping uses too;
// parameters in one block (bucket_blocks.h) count together, unless the store begins each at a block, as
// a trainer's does. Findings depend on the sums of the reduction tree alone, so they are the same on all ranks and at
// any number of ranks. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/parallel/guard/gradient_guard_options.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::parallel {

struct GradientFinding {
  enum class Level : std::uint8_t { Fine, Warn, Act };
  Level level = Level::Fine;
  bool whole = true;  // the norm is that of all parameters; `parameter` has the largest part
  std::string parameter = {};
  double norm = 0, limit = 0;
  bool finite = true;
  std::string str() const;
};

class GradientGuard {
 public:
  GradientGuard(const plan::ParameterStore& store, const GradientGuardOptions& options);
  // `squares`: sums of squares by block of all buckets; `scale` is the factor from the sum to the gradient. `further`:
  // the sum of the squares of gradients in no bucket, rows of sparse tables, which count in the norm of all together.
  const GradientFinding& look(std::span<const double> squares, double scale, double further = 0);
  void accept();  // the step was applied: adds its norms to the means
  // Means and the number of steps in them, for checkpoints.
  std::span<double> state() { return state_; }

 private:
  struct Watched {
    std::string name;
    Range blocks;
  };
  void judge(std::size_t watched, double limit);
  std::size_t largest() const;

  GradientGuardOptions options_;
  std::vector<Watched> watched_;  // all parameters together first
  std::vector<double> norms_;
  std::vector<double> state_;  // steps, then the mean norm of each
  GradientFinding finding_;
  double worst_ = 0;
};

}  // namespace lockstep::parallel
