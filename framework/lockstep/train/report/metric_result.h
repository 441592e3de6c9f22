// The results of a model's metrics that a run shows, logs and compares.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/metric.h"

namespace lockstep::train {

// The results of one metric, and the sums from which they follow.
struct MetricResult {
  std::string name{};
  std::vector<double> results{};  // empty: not computed, in training or because there are no samples
  std::vector<double> sums{};
  MetricForm form = MetricForm::Number;
  std::int64_t columns = 0;          // of a table; 0: the results are a list
  std::vector<std::string> names{};  // as MetricRule's

  // Returns "accuracy 85.31%"; empty unless there is one result.
  std::string str() const;
};

// Computes the results of a metric from its own sums, by its rule.
void finish(MetricResult& metric, const MetricRule& rule, std::int64_t samples);
// Computes the results of a metric from its sums over `samples` samples. Without sums or samples there are no results.
void set(MetricResult& metric, const MetricRule& rule, std::span<const double> sums, std::int64_t samples);
// Returns the metrics with one result as text: "accuracy 85.31%, mae 0.02113"; `between` separates two.
std::string metrics_text(std::span<const MetricResult> metrics, std::string_view between = ", ");

// Returns lines with what metrics of several results that have names, and tables, found: "iou_by_class: air 91.2%,
// ..."; a table of up to 10 classes whole, of larger ones the 5 largest numbers beside the diagonal.
std::vector<std::string> metric_lines(std::span<const MetricResult> metrics);

// Returns a mean loss with four decimals, or with four digits where it is below 0.01.
std::string loss_text(double loss);
// Returns the result of the metric of this name, if it has one result.
std::optional<double> find_result(std::span<const MetricResult> metrics, std::string_view name);

}  // namespace lockstep::train
