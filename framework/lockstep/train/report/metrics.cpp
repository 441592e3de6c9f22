#include "lockstep/train/report/metrics.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr const char* kMetricsSite = "metrics";
constexpr const char* kMetricsName = "metrics.jsonl";

std::shared_ptr<const io::Folder> made(const std::filesystem::path& output) {
  std::error_code error;
  std::filesystem::create_directories(output, error);
  check(!error, kMetricsSite, "cannot create {}: {}; expected a writable --output", output.string(), error.message());
  return std::make_shared<const io::Folder>(output);
}

using Json = nlohmann::ordered_json;

// A table as an array of its rows.
Json table_of(const MetricResult& metric) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < metric.results.size(); ++i) {
    if (i % static_cast<std::size_t>(metric.columns) == 0) rows.push_back(Json::array());
    rows.back().push_back(metric.results[i]);
  }
  return rows;
}

}  // namespace

void add_results(std::span<const MetricResult> metrics, nlohmann::ordered_json& record) {
  for (const MetricResult& metric : metrics) {
    if (metric.results.size() == 1) record[metric.name] = metric.results[0];
    if (metric.results.size() > 1) record[metric.name] = metric.columns > 0 ? table_of(metric) : Json(metric.results);
  }
}

MetricsWriter::MetricsWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step)
    : lines_(open(std::move(output), resumed_step)) {
  lines_.open();
}

MetricsWriter::MetricsWriter(const std::filesystem::path& output, std::optional<std::int64_t> resumed_step)
    : MetricsWriter(made(output), resumed_step) {}

JsonLines MetricsWriter::open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step) {
  const auto note = [this](const nlohmann::json& line) {
    if (!line.contains("split") || !line["split"].is_string()) return false;
    std::int64_t& last = kept_.try_emplace(line["split"].get<std::string>(), -1).first->second;
    last = std::max(last, line["step"].get<std::int64_t>());
    return true;
  };
  return JsonLines({.folder = std::move(output),
                    .name = kMetricsName,
                    .site = kMetricsSite,
                    .resumed_step = resumed_step,
                    .stays = note});
}

void MetricsWriter::check_file(const io::Folder& output) { JsonLines::check_file(output, kMetricsName, kMetricsSite); }

bool MetricsWriter::write(const MetricsRecord& record) {
  if (const auto kept = kept_.find(record.split); kept != kept_.end() && record.step <= kept->second) return false;
  nlohmann::ordered_json json = {
      {"step", record.step}, {"epoch", record.epoch}, {"split", record.split}, {"loss", record.loss}};
  add_results(record.metrics, json);
  json.update({{"lr", record.lr}, {"samples_per_second", record.samples_per_second}, {"seconds", record.seconds}});
  for (const auto& field : record.extra.items()) json[field.key()] = field.value();
  lines_.append(json);
  return true;
}

}  // namespace lockstep::train
