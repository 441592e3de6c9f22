#include "lockstep/parallel/guard/gradient_decision.h"

#include <cmath>

namespace lockstep::parallel {

GradientDecision::GradientDecision(const plan::ParameterStore& store, std::span<const double> squares,
                                   std::span<const double> noise, const Options& options)
    : options_(options), squares_(squares), noise_sums_(noise) {
  if (options.guard) guard_ = std::make_unique<GradientGuard>(store, options.limits);
}

void GradientDecision::decide(StepState& step, double samples, double further) {
  finding_ = {};
  noise_.reset();
  if (options_.needs_squares()) {
    double total = 0;
    for (double square : squares_) total += square;
    const double in_buckets = std::sqrt(total) * step.update.gradient_scale;
    norm_ = std::sqrt(total + further) * step.update.gradient_scale;
    if (guard_ && step.applies()) judge(step, further);
    if (options_.noise && step.applies()) noise_ = estimate_noise(noise_sums_, in_buckets * in_buckets, samples);
    // As torch.nn.utils.clip_grad_norm_.
    const double factor = options_.clip_norm / (norm_ + 1e-6);
    if (options_.clip_norm > 0 && factor < 1) step.update.gradient_scale *= factor;
  }
  if (inspect_ && step.applies()) step.update.gradient_scale *= inspect_();
}

void GradientDecision::judge(StepState& step, double further) {
  finding_ = guard_->look(squares_, step.update.gradient_scale, further);
  if (options_.hold && finding_.level == GradientFinding::Level::Act) {
    step.verdict = StepVerdict::BadGradient;
  } else if (finding_.finite) {
    guard_->accept();
  }
}

}  // namespace lockstep::parallel
