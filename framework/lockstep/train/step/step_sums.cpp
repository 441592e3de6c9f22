#include "lockstep/train/step/step_sums.h"

#include "lockstep/parallel/gradient_engine.h"

namespace lockstep::train {

void add_sums(const Plan& plan, const NominalPlan& nominal, std::int64_t samples, std::span<double> sums) {
  sums[kLossSum] += plan.loss() * plan.weight();
  sums[kWeightSum] += plan.weight();
  sums[kSampleSum] += static_cast<double>(samples);
  for (std::size_t c = 0; c < nominal.counts.size(); ++c) sums[kFirstCount + c] += plan.count(nominal.counts[c]);
}

void set_totals(std::span<const double> sums, const NominalPlan& nominal, Totals& t) {
  t.weight = sums[kWeightSum];
  t.samples = static_cast<std::int64_t>(sums[kSampleSum]);
  t.loss = t.weight > 0 ? sums[kLossSum] / t.weight : 0;
  for (std::size_t c = 0; c < nominal.counts.size(); ++c) t.counts[nominal.counts[c]] = sums[kFirstCount + c];
}

}  // namespace lockstep::train
