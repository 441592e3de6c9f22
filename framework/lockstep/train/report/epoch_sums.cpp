#include "lockstep/train/report/epoch_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {

void EpochSums::take_rules(std::span<const MetricRule> rules) {
  std::vector<MetricResult> ordered(rules.size());
  for (std::size_t m = 0; m < rules.size(); ++m) {
    const auto before = std::ranges::find(metrics, rules[m].name, &MetricResult::name);
    if (before != metrics.end()) ordered[m].sums = std::move(before->sums);
    finish(ordered[m], rules[m], samples);
  }
  metrics = std::move(ordered);
}

void EpochSums::add_metrics(std::span<const MetricRule> rules, std::span<const MetricResult> step) {
  if (!std::ranges::equal(metrics, rules, {}, &MetricResult::name, &MetricRule::name)) take_rules(rules);
  for (std::size_t m = 0; m < step.size(); ++m) {
    std::vector<double>& sums = metrics[m].sums;
    if (sums.size() != step[m].sums.size()) sums.assign(step[m].sums.size(), 0);
    std::ranges::transform(sums, step[m].sums, sums.begin(), std::plus<>());
    finish(metrics[m], rules[m], samples);
  }
}

std::string EpochSums::str() const {
  if (samples == 0) return "";
  const std::string part =
      after ? fmt::format(" (of the steps after {}: the checkpoint has no sums of earlier steps)", *after) : "";
  const std::string of_metrics = metrics_text(metrics);
  return fmt::format("training loss {}{}{}{}; ", loss_text(mean_loss()), of_metrics.empty() ? "" : ", ", of_metrics,
                     part);
}

nlohmann::json to_json(const EpochSums& sums) {
  if (sums.epoch < 0) return nullptr;
  nlohmann::json json = {
      {"epoch", sums.epoch}, {"loss", sums.loss}, {"weight", sums.weight}, {"samples", sums.samples}};
  for (const MetricResult& metric : sums.metrics) json["metrics"][metric.name] = metric.sums;
  if (sums.after) json["after"] = *sums.after;
  return json;
}

EpochSums epoch_sums(const nlohmann::json& metadata, const std::string& file) {
  const auto found = metadata.find(kEpochSumsKey);
  if (found == metadata.end() || found->is_null()) return {};
  EpochSums sums;
  try {
    sums.epoch = found->at("epoch").get<std::int64_t>();
    sums.loss = number(found->at("loss"));
    sums.weight = number(found->at("weight"));
    sums.samples = found->at("samples").get<std::int64_t>();
    const nlohmann::json metrics = found->value("metrics", nlohmann::json::object());
    for (const auto& metric : metrics.items()) {
      sums.metrics.push_back({.name = metric.key()});
      for (const auto& sum : metric.value()) sums.metrics.back().sums.push_back(number(sum));
    }
    // Files of the time before metrics counted correct predictions alone.
    const nlohmann::json counts = found->value("counts", nlohmann::json::object());
    if (metrics.empty() && counts.contains("correct"))
      sums.metrics.push_back({.name = "accuracy", .sums = {number(counts.at("correct"))}});
    if (found->contains("after")) sums.after = found->at("after").get<std::int64_t>();
  } catch (const nlohmann::json::exception& error) {
    fail("resume", "{}: '{}' in its metadata cannot be used: {}", file, kEpochSumsKey, error.what());
  }
  check(sums.epoch >= 0 && sums.samples >= 0, "resume", "{}: '{}' in its metadata is of epoch {} with {} samples", file,
        kEpochSumsKey, sums.epoch, sums.samples);
  return sums;
}

}  // namespace lockstep::train
