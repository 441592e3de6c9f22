#include "lockstep/parallel/update/tensor_norms.h"

namespace lockstep::parallel {

TensorNorms::TensorNorms(const plan::ParameterStore& store, Updater& updater, BucketReducer& reducer, const Sums& sums)
    : buckets_(store.buckets().size()), updater_(updater), reducer_(reducer), sums_(sums) {
  for (std::size_t b = 0; !sums.norms.empty() && b < buckets_; ++b)
    measured_.push_back(reducer.counted(reduction_of(b)));
}

void TensorNorms::start(const StepState& step) {
  const std::size_t blocks = sums_.norms.size() / 2;
  if (step.applies() && updater_.clips_parameters())
    updater_.clip_parameters(sums_.squares, step.update.gradient_scale);
  if (sums_.norms.empty()) return;
  for (std::size_t b = 0; step.applies() && b < buckets_; ++b) {
    for (const Range range : measured_[b])
      updater_.measure(b, range, step.update, sums_.norms.first(blocks), sums_.norms.last(blocks));
  }
  reducer_.start(reduction());  // in every step, also in one that is not applied
}

bool TensorNorms::advance(const StepState& step) {
  if (!started_) start(step);
  started_ = true;
  if (sums_.norms.empty()) return true;
  if (!reducer_.reduced(reduction())) return false;
  const std::size_t blocks = sums_.norms.size() / 2;
  if (step.applies()) updater_.set_trust(sums_.norms.first(blocks), sums_.norms.last(blocks), step.update);
  return true;
}

}  // namespace lockstep::parallel
