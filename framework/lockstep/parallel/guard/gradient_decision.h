// Decides by the whole gradient whether a step is applied and with which factor: clipping by the global norm, the
// GradientGuard, and a function of the caller; and estimates the gradient's noise. Alike on all ranks. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "lockstep/parallel/control/step_state.h"
#include "lockstep/parallel/guard/gradient_guard.h"
#include "lockstep/parallel/reduce/gradient_noise.h"

namespace lockstep::parallel {

class GradientDecision {
 public:
  struct Options {
    double clip_norm = 0;  // largest norm of the mean gradient; 0: any
    bool guard = false;    // check norms against `limits`
    bool hold = false;     // hold back a step whose gradient is not finite or exceeds a limit
    GradientGuardOptions limits = {};
    bool noise = false;         // estimate the noise
    bool by_parameter = false;  // the update depends on norms of whole parameters (update/tensor_norms.h)
    bool needs_squares() const { return clip_norm > 0 || guard || noise || by_parameter; }
  };
  // `squares` by block of all buckets, of the sums; empty unless needs_squares(). `noise`: see NoiseSum.
  GradientDecision(const plan::ParameterStore& store, std::span<const double> squares, std::span<const double> noise,
                   const Options& options);

  // Whether updates wait for the whole gradient; if not, decide() is not called.
  bool waits_for_gradient() const { return options_.needs_squares() || inspect_; }
  // Sets a function that is called between reduction and update and returns a factor for the gradient.
  void inspect_by(std::function<double()> inspect) { inspect_ = std::move(inspect); }
  // Call it when the whole gradient and its squares are complete: sets the verdict and the gradient_scale of the step,
  // which has `samples` samples over all ranks. `further`: sum of the squares of gradients that lie in no bucket.
  void decide(StepState& step, double samples, double further = 0);
  bool judges_norm() const { return options_.clip_norm > 0 || options_.guard; }  // by squares of all gradients

  const std::optional<NoiseEstimate>& noise() const { return noise_; }  // of the last step
  double norm() const { return norm_; }                        // of the last step, before clipping; 0 without squares
  const GradientFinding& finding() const { return finding_; }  // of the last step; Fine where nothing was to be judged
  GradientGuard* guard() { return guard_.get(); }              // null unless Options::guard

 private:
  void judge(StepState& step, double further);
  Options options_;
  std::span<const double> squares_, noise_sums_;
  std::unique_ptr<GradientGuard> guard_;
  std::function<double()> inspect_;
  GradientFinding finding_;
  double norm_ = 0;
  std::optional<NoiseEstimate> noise_;
};

}  // namespace lockstep::parallel
