#include "lockstep/train/report/metric_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::train {

std::string MetricResult::str() const {
  if (results.size() != 1) return "";
  return form == MetricForm::Percent ? fmt::format("{} {:.2f}%", name, 100 * results[0])
                                     : fmt::format("{} {:.4g}", name, results[0]);
}

std::optional<double> find_result(std::span<const MetricResult> metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &MetricResult::name);
  return found == metrics.end() || found->results.size() != 1 ? std::nullopt : std::optional(found->results[0]);
}

void set(MetricResult& metric, const MetricRule& rule, std::span<const double> sums, std::int64_t samples) {
  metric.name = rule.name;
  metric.form = rule.form;
  metric.sums.assign(sums.begin(), sums.end());
  metric.results.resize(sums.empty() || samples == 0 ? 0 : static_cast<std::size_t>(rule.results));
  if (!metric.results.empty()) rule.finish(sums, static_cast<double>(samples), metric.results);
}

std::string loss_text(double loss) {
  return loss != 0 && std::abs(loss) < 0.01 ? fmt::format("{:.4g}", loss) : fmt::format("{:.4f}", loss);
}

std::string metrics_text(std::span<const MetricResult> metrics, std::string_view between) {
  std::string text;
  for (const MetricResult& metric : metrics) {
    const std::string one = metric.str();
    if (!one.empty()) text += fmt::format("{}{}", text.empty() ? "" : between, one);
  }
  return text;
}

}  // namespace lockstep::train
