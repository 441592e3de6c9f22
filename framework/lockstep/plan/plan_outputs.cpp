#include "lockstep/plan/plan_outputs.h"

#include "lockstep/core/error.h"

namespace lockstep::plan {

PlanOutputs::PlanOutputs(const Graph& graph, const Traced& traced)
    : loss_(keep(traced.loss.mean)), weight_(keep(traced.loss.weight)), prediction_(keep(traced.prediction)) {
  for (const auto& [name, value] : traced.counts) {
    check(value.type() == Type{Shape{}, DType::F64}, "model", "count '{}' is {}, expected an f64 scalar", name,
          value.type().str());
    counts_[name] = keep(value);
    count_names_.push_back(name);
  }
  for (const auto& [name, value] : graph.observed()) observed_[name] = keep(value);
  for (const RunningStatistics& s : graph.statistics()) statistics_.push_back(keep(s.sums));
}

int PlanOutputs::keep(Value value) {
  if (!value) return -1;
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

int PlanOutputs::count(const std::string& name) const {
  const auto found = counts_.find(name);
  if (found == counts_.end()) {  // the list of names takes memory, which a run must not allocate
    fail("plan", "'{}' is not a count that the model function returns; it returns {}", name,
         count_names_.empty() ? "none" : joined(count_names_, ", "));
  }
  return found->second;
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
