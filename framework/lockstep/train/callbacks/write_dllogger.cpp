#include "lockstep/train/callbacks/write_dllogger.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "lockstep/parallel/step/step_times.h"

namespace lockstep::train {
namespace {

struct MetricText {
  const char *name, *unit, *format;
};
// Formats are those of Python's str.format(), as DLLogger's readers expect them.
constexpr std::array kMetrics{
    MetricText{"train.loss", "", ":.5f"},
    MetricText{"train.total_ips", "img/s", ":.2f"},
    MetricText{"train.compute_time", "s", ":.5f"},
    MetricText{"train.waiting_time", "s", ":.5f"},
    MetricText{"lr", "", ":.6g"},
    MetricText{"val.loss", "", ":.5f"},
    MetricText{"val.total_ips", "img/s", ":.2f"},
};

constexpr double kShortestTime = 1e-9;  // seconds

// The name of a metric in DLLogger's files, where the accuracy has one of its own.
std::string name_of(const std::string& split, const std::string& metric) {
  return split + "." + (metric == "accuracy" ? "top1" : metric);
}

// Returns the first values of a line, of "train" or "val": the loss and the metrics with one result.
nlohmann::ordered_json results(const std::string& split, double loss, std::span<const MetricResult> metrics) {
  nlohmann::ordered_json values = {{split + ".loss", loss}};
  for (const MetricResult& metric : metrics) {
    if (metric.results.size() != 1) continue;
    const double scale = metric.form == MetricForm::Percent ? 100 : 1;
    values[name_of(split, metric.name)] = scale * metric.results[0];
  }
  return values;
}

nlohmann::ordered_json description(const char* unit, const char* format) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  if (*unit != '\0') values["unit"] = unit;
  values["format"] = format;
  return values;
}

}  // namespace

double WriteDllogger::Meter::per_second() const {
  const std::chrono::duration<double> took = Clock::now() - since;
  return static_cast<double>(samples) / std::max(kShortestTime, took.count());
}

void WriteDllogger::begin_run(std::int64_t /*step*/) {
  DlloggerWriter* file = files_.dllogger();
  if (file == nullptr) return;
  file->parameters(parameters_);
  for (const MetricText& metric : kMetrics) file->metadata(metric.name, description(metric.unit, metric.format));
  for (const MetricRule& rule : trainer_.metrics()) {
    if (rule.results != 1) continue;
    const bool percent = rule.form == MetricForm::Percent;
    const nlohmann::ordered_json values = description(percent ? "%" : "", percent ? ":.2f" : ":.5g");
    if (rule.in_training) file->metadata(name_of("train", rule.name), values);
    file->metadata(name_of("val", rule.name), values);
  }
}

void WriteDllogger::begin_epoch(const EpochEvent& /*event*/) { update_ = epoch_ = {}; }
void WriteDllogger::rolled_back(std::int64_t /*step*/) { update_ = epoch_ = {}; }

void WriteDllogger::after_step(const StepEvent& event, Orders& /*orders*/) {
  if (files_.dllogger() == nullptr) return;
  update_.samples += event.totals.samples;
  epoch_.samples += event.totals.samples;
  if (every_ > 0 && event.step % every_ == 0) write_step(event);
  if (event.epoch_ends || event.run_ends) write_epoch(event.step, event.epoch);
}

void WriteDllogger::end_epoch(const EpochEvent& event, Orders& /*orders*/) {
  if (files_.dllogger() != nullptr && event.stream_ended) write_epoch(event.step, event.epoch);
}

void WriteDllogger::write_step(const StepEvent& event) {
  const auto& times = trainer_.times();
  nlohmann::ordered_json values = results("train", event.totals.loss, event.totals.metrics);
  values["train.total_ips"] = update_.per_second();
  values["train.compute_time"] = times.compute;
  values["train.waiting_time"] = times.waiting + times.earlier;
  values["lr"] = event.learning_rate;
  files_.dllogger()->log({event.epoch - 1, event.step_in_epoch}, event.step, std::move(values));
  update_ = {};
}

void WriteDllogger::write_epoch(std::int64_t step, std::int64_t epoch) {
  const EpochSums& sums = record_.epoch;
  nlohmann::ordered_json values = results("train", sums.mean_loss(), sums.metrics);
  values["train.total_ips"] = epoch_.per_second();
  summary_.update(values);
  files_.dllogger()->log({epoch - 1}, step, values);
}

void WriteDllogger::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  DlloggerWriter* file = files_.dllogger();
  if (file == nullptr || !event.scheduled || !event.totals.whole) return;
  const double rate = static_cast<double>(event.totals.samples) / std::max(kShortestTime, event.seconds);
  nlohmann::ordered_json values = results("val", event.totals.loss, event.totals.metrics);
  values["val.total_ips"] = rate;
  for (const auto& [name, totals] : event.more) values.update(results("val." + name, totals.loss, totals.metrics));
  summary_.update(values);
  file->log({event.epoch - 1}, event.step, values);
  update_ = {};
}

void WriteDllogger::end_run(const RunEnd& end) {
  if (DlloggerWriter* file = files_.dllogger(); file != nullptr && !summary_.empty())
    file->log({}, end.step, std::exchange(summary_, nlohmann::ordered_json::object()));
}

}  // namespace lockstep::train
