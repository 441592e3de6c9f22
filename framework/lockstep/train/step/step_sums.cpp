#include "lockstep/train/step/step_sums.h"

#include "lockstep/parallel/gradient_engine.h"

namespace lockstep::train {

void add_sums(const plan::Plan& plan, const NominalPlan& nominal, std::int64_t samples, std::span<double> sums) {
  sums[parallel::kLossSum] += plan.loss() * plan.weight();
  sums[parallel::kWeightSum] += plan.weight();
  sums[parallel::kSampleSum] += static_cast<double>(samples);
  for (std::size_t c = 0; c < nominal.counts.size(); ++c)
    sums[parallel::kFirstCount + c] += plan.count(nominal.counts[c]);
}

void set_totals(std::span<const double> sums, const NominalPlan& nominal, Totals& t) {
  t.weight = sums[parallel::kWeightSum];
  t.samples = static_cast<std::int64_t>(sums[parallel::kSampleSum]);
  t.loss = t.weight > 0 ? sums[parallel::kLossSum] / t.weight : 0;
  for (std::size_t c = 0; c < nominal.counts.size(); ++c) t.counts[nominal.counts[c]] = sums[parallel::kFirstCount + c];
}

}  // namespace lockstep::train
