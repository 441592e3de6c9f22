#include "lockstep/train/callbacks/write_dllogger.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::train {
namespace {

struct Metric {
  const char *name, *unit, *format;
};
// Formats are those of Python's str.format(), as DLLogger's readers expect them.
constexpr std::array kMetrics{
    Metric{"train.loss", "", ":.5f"},
    Metric{"train.top1", "%", ":.2f"},
    Metric{"train.total_ips", "img/s", ":.2f"},
    Metric{"train.compute_time", "s", ":.5f"},
    Metric{"train.waiting_time", "s", ":.5f"},
    Metric{"lr", "", ":.6g"},
    Metric{"val.loss", "", ":.5f"},
    Metric{"val.top1", "%", ":.2f"},
    Metric{"val.total_ips", "img/s", ":.2f"},
};

constexpr double kShortest = 1e-9;  // seconds

double percent(const Totals& totals) { return 100 * totals.fraction("correct"); }

}  // namespace

double WriteDllogger::Meter::per_second() const {
  const std::chrono::duration<double> took = Clock::now() - since;
  return static_cast<double>(samples) / std::max(kShortest, took.count());
}

void WriteDllogger::begin_run(std::int64_t /*step*/) {
  DlloggerWriter* file = files_.dllogger();
  if (file == nullptr) return;
  file->parameters(parameters_);
  for (const Metric& metric : kMetrics) {
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
  files_.dllogger()->log({event.epoch - 1, event.step_in_epoch}, event.step,
                         {{"train.loss", event.totals.loss},
                          {"train.top1", percent(event.totals)},
                          {"train.total_ips", update_.per_second()},
                          {"train.compute_time", times.compute},
                          {"train.waiting_time", times.waiting + times.earlier},
                          {"lr", event.learning_rate}});
  update_ = {};
}

void WriteDllogger::write_epoch(const StepEvent& event) {
  const EpochSums& sums = record_.epoch;
  const nlohmann::ordered_json values = {{"train.loss", sums.mean_loss()},
                                         {"train.top1", 100 * sums.fraction("correct")},
                                         {"train.total_ips", epoch_.per_second()}};
  summary_.update(values);
  files_.dllogger()->log({event.epoch - 1}, event.step, values);
}

void WriteDllogger::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  DlloggerWriter* file = files_.dllogger();
  if (file == nullptr || !event.scheduled || !event.totals.whole) return;
  const double rate = static_cast<double>(event.totals.samples) / std::max(kShortest, event.seconds);
  const nlohmann::ordered_json values = {
      {"val.loss", event.totals.loss}, {"val.top1", percent(event.totals)}, {"val.total_ips", rate}};
  summary_.update(values);
  file->log({event.epoch - 1}, event.step, values);
  update_ = {};
}

void WriteDllogger::end_run(const RunEnd& end) {
  if (DlloggerWriter* file = files_.dllogger(); file != nullptr && !summary_.empty())
    file->log({}, end.step, std::exchange(summary_, nlohmann::ordered_json::object()));
}

}  // namespace lockstep::train
