#include "lockstep/train/run/retention.h"

#include <string>

#include "lockstep/core/error.h"

namespace lockstep::train {

bool is_higher_better(std::string_view option, std::string_view metric, std::span<const MetricRule> metrics) {
  if (metric == checkpoint::Retention::kLoss) return false;
  std::string known(checkpoint::Retention::kLoss);
  for (const MetricRule& rule : metrics) {
    if (rule.better == Better::Neither || rule.results != 1) continue;
    if (rule.name == metric) return rule.better == Better::Higher;
    known += ", " + rule.name;
  }
  fail("options",
       "--{} names the metric '{}', and the model has none of this name that can be compared; expected one of {}",
       option, metric, known);
}

checkpoint::Retention retention(const Options& options, std::span<const MetricRule> metrics) {
  checkpoint::Retention keep = checkpoint::parse_retention(options.checkpoints.keep, "options");
  if (!keep.best.empty()) keep.higher_is_better = is_higher_better("keep", keep.best, metrics);
  return keep;
}

}  // namespace lockstep::train
