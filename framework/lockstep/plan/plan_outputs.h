// The values that a plan keeps for its caller, as indices into the outputs of its assembly: the loss, its weight, the
// prediction, sums of metrics, observed values and batch sums of running statistics. Immutable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/plan/trace.h"

namespace lockstep::plan {

// A metric of the model function, and where its sums are.
struct PlanMetric {
  struct Sum {
    int output = -1;  // -1: not computed, as the metric is of evaluations alone
    std::size_t elements = 0;
  };
  MetricRule rule{};
  std::vector<Sum> sums{};
  int scores = -1, labels = -1, groups = -1;  // outputs with the pairs of a metric of pairs, in evaluations; -1: none
  std::size_t lists = 0;                      // of pairs

  // Returns the number of f64 values that a step or an evaluation sums for this metric.
  std::size_t elements(Mode mode) const;
};

class PlanOutputs {
 public:
  // Collects the outputs of a traced graph. Throws Error for a metric whose sums are not f64 or whose rule is not
  // complete.
  PlanOutputs(const Graph& graph, const Traced& traced);

  const std::vector<Value>& values() const { return values_; }  // by index
  // -1 where the model function returned none.
  int loss() const { return loss_; }
  int weight() const { return weight_; }
  int prediction() const { return prediction_; }
  const std::vector<PlanMetric>& metrics() const { return metrics_; }
  int observed(const std::string& name) const;  // throws Error where the model function does not observe it
  std::vector<std::string> observed_names() const;
  int statistic(std::size_t i) const { return statistics_[i]; }

 private:
  int keep(Value value);
  void keep(const Metric& metric, Mode mode);
  void keep_pairs(const Metric& metric, Mode mode, PlanMetric& kept);

  std::vector<Value> values_;
  int loss_, weight_, prediction_;
  std::map<std::string, int> observed_;
  std::vector<int> statistics_;
  std::vector<PlanMetric> metrics_;
};

}  // namespace lockstep::plan
