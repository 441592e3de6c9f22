#include "lockstep/plan/plan_outputs.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::plan {
namespace {

constexpr std::size_t kLongestName = 64;  // of a metric: a checkpoint's header has room for it

}  // namespace

PlanOutputs::PlanOutputs(const Graph& graph, const Traced& traced)
    : loss_(keep(traced.loss.mean)), weight_(keep(traced.loss.weight)), prediction_(keep(traced.prediction)) {
  for (const Metric& metric : traced.metrics) keep(metric, graph.mode());
  for (const auto& [name, value] : graph.observed()) observed_[name] = keep(value);
  for (const RunningStatistics& s : graph.statistics()) statistics_.push_back(keep(s.sums));
}

std::size_t PlanMetric::elements(Mode mode) const {
  std::size_t all = 0;
  for (const Sum& sum : sums) all += mode == Mode::Eval || rule.in_training ? sum.elements : 0;
  return all;
}

int PlanOutputs::keep(Value value) {
  if (!value) return -1;
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

void PlanOutputs::keep(const Metric& metric, Mode mode) {
  const MetricRule& rule = metric.rule;
  const bool is_name =
      !rule.name.empty() && rule.name.size() <= kLongestName &&
      std::ranges::all_of(rule.name, [](char c) { return c > ' ' && c <= '~' && c != ',' && c != ':'; });
  check(is_name, "model",
        "a metric is named '{}', expected 1 to {} visible ASCII characters without , and :", rule.name, kLongestName);
  const bool pairs = rule.ranked != nullptr;
  check(rule.finish && rule.results > 0 && metric.sums.empty() == pairs, "model",
        "metric '{}' has {} results, {} sums and {} function, expected at least one of each, or pairs and no sums",
        rule.name, rule.results, metric.sums.size(), rule.finish ? "a" : "no");
  for (const PlanMetric& other : metrics_) {
    check(other.rule.name != rule.name, "model", "two metrics are named '{}', expected different names", rule.name);
  }
  PlanMetric kept{.rule = rule};
  const bool computed = mode == Mode::Eval || rule.in_training;
  for (const Value& sum : metric.sums) {
    check(sum && sum.dtype() == DType::F64, "model", "metric '{}' sums {}, expected f64", rule.name,
          sum ? sum.type().str() : "nothing");
    kept.sums.push_back(
        {.output = computed ? keep(sum) : -1, .elements = static_cast<std::size_t>(sum.shape().elements())});
  }
  if (pairs) keep_pairs(metric, mode, kept);
  metrics_.push_back(std::move(kept));
}

void PlanOutputs::keep_pairs(const Metric& metric, Mode mode, PlanMetric& kept) {
  const MetricRule& rule = metric.rule;
  check(!rule.in_training, "model", "metric '{}' is one of pairs, expected in_training to be false", rule.name);
  check(metric.scores && metric.labels && metric.scores.dtype() == DType::F64 &&
            metric.scores.type() == metric.labels.type() && metric.scores.shape().rank() >= 2,
        "model", "metric '{}' has scores {} and labels {}, expected both to be f64 (samples, lists, ...)", rule.name,
        metric.scores ? metric.scores.type().str() : "none", metric.labels ? metric.labels.type().str() : "none");
  check(!metric.groups || metric.groups.type() == metric.scores.type(), "model",
        "metric '{}' has scores {} and groups {}, expected one type and shape", rule.name, metric.scores.type().str(),
        metric.groups ? metric.groups.type().str() : "none");
  kept.lists = static_cast<std::size_t>(metric.scores.shape()[1]);
  if (mode != Mode::Eval) return;
  kept.scores = keep(metric.scores);
  kept.labels = keep(metric.labels);
  kept.groups = keep(metric.groups);
}

int PlanOutputs::observed(const std::string& name) const {
  const auto found = observed_.find(name);
  check(found != observed_.end(), "plan", "'{}' is not observed by the model function", name);
  return found->second;
}

std::vector<std::string> PlanOutputs::observed_names() const {
  std::vector<std::string> names;
  for (const auto& [name, output] : observed_) names.push_back(name);
  return names;
}

}  // namespace lockstep::plan
