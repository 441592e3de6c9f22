#include "lockstep/train/report/metric_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

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

void finish(MetricResult& metric, const MetricRule& rule, std::int64_t samples) {
  metric.name = rule.name;
  metric.form = rule.form;
  metric.columns = rule.columns;
  metric.names = rule.names;
  metric.results.resize(metric.sums.empty() || samples == 0 ? 0 : static_cast<std::size_t>(rule.results));
  if (!metric.results.empty()) rule.finish(metric.sums, static_cast<double>(samples), metric.results);
}

void set(MetricResult& metric, const MetricRule& rule, std::span<const double> sums, std::int64_t samples) {
  metric.sums.assign(sums.begin(), sums.end());
  finish(metric, rule, samples);
}

namespace {

constexpr std::size_t kWholeTable = 10, kLargest = 5;  // classes of a table that is shown whole; numbers of another one

std::string result_name(const MetricResult& metric, std::size_t i) {
  return i < metric.names.size() ? metric.names[i] : fmt::format("{}", i);
}

std::string list_line(const MetricResult& metric) {
  std::string line = metric.name;
  for (std::size_t i = 0; i < metric.results.size(); ++i) {
    const double value = metric.results[i];
    line += fmt::format(
        "{} {} {}", i == 0 ? ":" : ",", result_name(metric, i),
        metric.form == MetricForm::Percent ? fmt::format("{:.2f}%", 100 * value) : fmt::format("{:.4g}", value));
  }
  return line;
}

// "confusion, rows are classes and columns predictions:", and a line for each class.
void add_table(const MetricResult& metric, std::size_t columns, std::vector<std::string>& lines) {
  std::size_t width = 0, name = 0;
  for (std::size_t c = 0; c < columns; ++c) name = std::max(name, result_name(metric, c).size());
  for (const double value : metric.results) width = std::max(width, fmt::format("{:.6g}", value).size());
  lines.push_back(fmt::format("{}, rows are classes and columns predictions:", metric.name));
  for (std::size_t row = 0; row * columns < metric.results.size(); ++row) {
    std::string line = fmt::format("  {:<{}}", result_name(metric, row), name);
    for (std::size_t c = 0; c < columns; ++c)
      line += fmt::format("  {:>{}}", fmt::format("{:.6g}", metric.results[row * columns + c]), width);
    lines.push_back(std::move(line));
  }
}

// "confusion, most often: cat as dog 31, ...".
std::string largest_line(const MetricResult& metric, std::size_t columns) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < metric.results.size(); ++i) {
    if (i / columns != i % columns && metric.results[i] > 0) wrong.push_back(i);
  }
  const std::size_t shown = std::min(wrong.size(), kLargest);
  std::ranges::stable_sort(wrong, [&](std::size_t a, std::size_t b) { return metric.results[a] > metric.results[b]; });
  std::string line = fmt::format("{}, most often:{}", metric.name, shown == 0 ? " none" : "");
  for (std::size_t i = 0; i < shown; ++i)
    line += fmt::format("{} {} as {} {:.6g}", i == 0 ? "" : ",", result_name(metric, wrong[i] / columns),
                        result_name(metric, wrong[i] % columns), metric.results[wrong[i]]);
  return line;
}

}  // namespace

std::vector<std::string> metric_lines(std::span<const MetricResult> metrics) {
  std::vector<std::string> lines;
  for (const MetricResult& metric : metrics) {
    if (metric.results.empty()) continue;
    const auto columns = static_cast<std::size_t>(metric.columns);
    if (columns > kWholeTable) {
      lines.push_back(largest_line(metric, columns));
    } else if (columns > 0) {
      add_table(metric, columns, lines);
    } else if (metric.results.size() > 1 && !metric.names.empty()) {
      lines.push_back(list_line(metric));
    }
  }
  return lines;
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
