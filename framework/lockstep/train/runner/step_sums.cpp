#include "lockstep/train/runner/step_sums.h"

#include <algorithm>

#include "lockstep/parallel/gradient_engine.h"

namespace lockstep::train {

void add_sums(const plan::Plan& plan, Mode mode, std::int64_t samples, std::span<double> sums) {
  sums[parallel::kLossSum] += plan.loss() * plan.weight();
  sums[parallel::kWeightSum] += plan.weight();
  sums[parallel::kSampleSum] += static_cast<double>(samples);
  auto sum = sums.begin() + parallel::kOtherSums;
  for (const plan::PlanMetric& metric : plan.metrics()) {
    if (metric.elements(mode) == 0) continue;
    for (const plan::PlanMetric::Sum& part : metric.sums) {
      for (const double value : plan.values(part)) *sum++ += value;
    }
  }
}

void set_totals(std::span<const double> sums, const NominalPlan& nominal, Mode mode, Totals& t) {
  t.weight = sums[parallel::kWeightSum];
  t.samples = static_cast<std::int64_t>(sums[parallel::kSampleSum]);
  t.loss = t.weight > 0 ? sums[parallel::kLossSum] / t.weight : 0;
  auto of_metrics = sums.subspan(parallel::kOtherSums);
  t.metrics.resize(nominal.metrics.size());
  for (std::size_t m = 0; m < nominal.metrics.size(); ++m) {
    const std::size_t elements = nominal.metrics[m].elements(mode);
    set(t.metrics[m], nominal.metrics[m].rule, of_metrics.first(elements), t.samples);
    of_metrics = of_metrics.subspan(elements);
  }
}

void set_ranked(std::span<const std::vector<double>> lists, const NominalPlan& nominal, Totals& t) {
  for (std::size_t m = 0; m < lists.size(); ++m) {
    if (!lists[m].empty()) set(t.metrics[m], nominal.metrics[m].rule, lists[m], t.samples);
  }
}

}  // namespace lockstep::train
