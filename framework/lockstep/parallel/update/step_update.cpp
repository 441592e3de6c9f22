#include "lockstep/parallel/update/step_update.h"

#include <cmath>

namespace lockstep::parallel {

StepUpdate::StepUpdate(const Parts& parts, const UpdateScheduler::Parts& update, const GradientSums& gradient,
                       const Options& options)
    : parts_(parts),
      options_(options),
      store_(update.store),
      buckets_(update),
      decision_(update.store, gradient.squares, gradient.noise, options.gradient),
      norms_(update.store, update.updater, update.reducer, {.squares = gradient.squares, .norms = gradient.norms}) {}

void StepUpdate::begin(const StepStart& start) {
  next_ = {.learning_rate = start.learning_rate, .gradient_scale = 0, .count = start.update};
}

void StepUpdate::open() {
  state_ = {.update = next_, .posted = true};
  judgement_ = Judgement::Due;
  norms_.open();
  buckets_.open();
  parts_.reductions.open();
  if (further_ != nullptr) further_->open(decision_.judges_norm());
}

bool StepUpdate::advance() {
  bool moved = false;
  try {
    moved = parts_.driver.advance();
  } catch (const Error&) {
    if (!state_.sums_known)
      take_sums();  // if ranks are in different steps, each rank reports this, not the failure of a peer
    throw;
  }
  if (further_ != nullptr) moved = further_->advance() || moved;
  if (judgement_ == Judgement::Underway) return moved;  // the factor for the gradient is not known yet
  if (!state_.sums_known && !take_sums()) return moved;
  if (!state_.decided && !decide()) return moved;
  moved = update_further() || moved;
  return buckets_.advance(parts_.reductions.started(), state_) || moved;
}

bool StepUpdate::take_sums() {
  if (!state_.posted || !parts_.sums.complete()) return false;
  parts_.sums.add_up();
  const std::span<const double> sums = parts_.sums.sums();
  state_.has_samples = sums[kSampleSum] > 0;
  const double weight = options_.local_weight ? parts_.sums.local_weight() : sums[kWeightSum];
  const bool has_weight = options_.local_weight ? weight > 0 : state_.has_samples;
  state_.update.gradient_scale = has_weight ? 1 / weight : 0;
  if (parts_.guard.is_damaged(parts_.sums)) {
    state_.verdict = StepVerdict::Damaged;
  } else if (options_.hold_loss && state_.has_samples && !std::isfinite(sums[kLossSum])) {
    state_.verdict = StepVerdict::BadLoss;
  }
  return state_.sums_known = true;
}

// Decides at once, or after the last bucket has arrived if the decision or the update depends on the whole gradient.
bool StepUpdate::decide() {
  if (decision_.waits_for_gradient()) {
    if (!parts_.reductions.is_gradient_reduced()) return false;
    if (further_ != nullptr && !further_->is_reduced()) return false;
    if (judgement_ == Judgement::Due) judge();
    if (!norms_.advance(state_)) return false;
  }
  return state_.decided = true;
}

void StepUpdate::judge() {
  judgement_ = Judgement::Underway;
  const double further = further_ != nullptr && decision_.judges_norm() ? further_->squares() : 0;
  decision_.decide(state_, parts_.sums.sums()[kSampleSum], further);
  judgement_ = Judgement::Done;
}

bool StepUpdate::update_further() {
  if (is_further_updated() || !further_->is_reduced()) return false;
  further_->update(state_);
  return true;
}

void StepUpdate::end() {
  state_.posted = false;
  ended_ = state_.update.count;
  store_.values_changed();
}

}  // namespace lockstep::parallel
