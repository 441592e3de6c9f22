#include "lockstep/train/callbacks/write_dllogger.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
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
    MetricText{"train.top1", "%", ":.2f"},
    MetricText{"train.total_ips", "img/s", ":.2f"},
    MetricText{"train.compute_time", "s", ":.5f"},
    MetricText{"train.waiting_time", "s", ":.5f"},
    MetricText{"lr", "", ":.6g"},
    MetricText{"val.loss", "", ":.5f"},
    MetricText{"val.top1", "%", ":.2f"},
    MetricText{"val.total_ips", "img/s", ":.2f"},
};

constexpr double kShortestTime = 1e-9;  // seconds

// Returns the first values of a line, of "train" or "val". A model that does not count correct predictions has no top1.
nlohmann::ordered_json results(const std::string& split, double loss, std::optional<double> accuracy) {
  nlohmann::ordered_json values = {{split + ".loss", loss}};
  if (accuracy) values[split + ".top1"] = 100 * *accuracy;
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
  const bool has_accuracy = std::ranges::count(trainer_.counts(), std::string("correct")) > 0;
  for (const MetricText& metric : kMetrics) {
    if (!has_accuracy && std::string_view(metric.name).ends_with(".top1")) continue;
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    if (*metric.unit != '\0') values["unit"] = metric.unit;
    values["format"] = metric.format;
    file->metadata(metric.name, values);
  }
}

void WriteDllogger::begin_epoch(const EpochEvent& /*event*/) { update_ = epoch_ = {}; }
void WriteDllogger::rolled_back(std::int64_t /*step*/) { update_ = epoch_ = {}; }

void WriteDllogger::after_step(const StepEvent& event, Orders& /*orders*/) {
  if (files_.dllogger() == nullptr) return;
  update_.samples += event.totals.samples;
  epoch_.samples += event.totals.samples;
  if (every_ > 0 && event.step % every_ == 0) write_step(event);
  if (event.epoch_ends || event.run_ends) write_epoch(event);
}

void WriteDllogger::write_step(const StepEvent& event) {
  const auto& times = trainer_.times();
  nlohmann::ordered_json values = results("train", event.totals.loss, event.totals.accuracy());
  values["train.total_ips"] = update_.per_second();
  values["train.compute_time"] = times.compute;
  values["train.waiting_time"] = times.waiting + times.earlier;
  values["lr"] = event.learning_rate;
  files_.dllogger()->log({event.epoch - 1, event.step_in_epoch}, event.step, std::move(values));
  update_ = {};
}

void WriteDllogger::write_epoch(const StepEvent& event) {
  const EpochSums& sums = record_.epoch;
  nlohmann::ordered_json values = results("train", sums.mean_loss(), sums.fraction("correct"));
  values["train.total_ips"] = epoch_.per_second();
  summary_.update(values);
  files_.dllogger()->log({event.epoch - 1}, event.step, values);
}

void WriteDllogger::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  DlloggerWriter* file = files_.dllogger();
  if (file == nullptr || !event.scheduled || !event.totals.whole) return;
  const double rate = static_cast<double>(event.totals.samples) / std::max(kShortestTime, event.seconds);
  nlohmann::ordered_json values = results("val", event.totals.loss, event.totals.accuracy());
  values["val.total_ips"] = rate;
  summary_.update(values);
  file->log({event.epoch - 1}, event.step, values);
  update_ = {};
}

void WriteDllogger::end_run(const RunEnd& end) {
  if (DlloggerWriter* file = files_.dllogger(); file != nullptr && !summary_.empty())
    file->log({}, end.step, std::exchange(summary_, nlohmann::ordered_json::object()));
}

}  // namespace lockstep::train
