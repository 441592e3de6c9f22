#include "lockstep/train/callbacks/write_metrics.h"

#include <algorithm>

#include "lockstep/parallel/step/step_times.h"

namespace lockstep::train {
namespace {

constexpr double kShortest = 1e-9;  // seconds

// Makes the timing fields of rank 0's last step. Network time that ends before this rank waits is hidden by computing.
nlohmann::ordered_json communication(const parallel::StepTimes& t) {
  const auto per_second = [](std::int64_t bytes, std::int64_t ns) {
    return ns > 0 ? static_cast<double>(bytes) / static_cast<double>(ns) : 0;  // bytes per ns are GB/s
  };
  const double network = 1e-9 * static_cast<double>(t.traffic.network_ns), exposed = t.waiting + t.earlier;
  return {
      {"compute_seconds", t.compute},    {"waiting_seconds", exposed},
      {"network_seconds", network},      {"network_hidden_seconds", std::max(0.0, network - t.waiting)},
      {"network_bytes", t.traffic.sent}, {"network_gb_per_second", per_second(t.traffic.sent, t.traffic.network_ns)},
      {"node_bytes", t.traffic.summed},  {"node_gb_per_second", per_second(t.traffic.summed, t.traffic.summing_ns)},
      {"slowest_rank", t.slowest},       {"slowest_lead_seconds", t.slowest_lead}};
}

}  // namespace

void WriteMetrics::begin_epoch_clock() {
  epoch_samples_ = 0;
  epoch_began_ = seconds();
}

void WriteMetrics::begin_epoch(const EpochEvent& /*event*/) { begin_epoch_clock(); }
void WriteMetrics::rolled_back(std::int64_t /*step*/) { begin_epoch_clock(); }

void WriteMetrics::after_step(const StepEvent& event, Orders& /*orders*/) {
  epoch_samples_ += event.totals.samples;
  logged_samples_ += event.totals.samples;
  if (every_ > 0 && event.step % every_ == 0) write_step(event);
  if (event.epoch_ends || event.run_ends) write_epoch(event.step, event.epoch, event.learning_rate);
}

void WriteMetrics::end_epoch(const EpochEvent& event, Orders& /*orders*/) {
  if (event.stream_ended) write_epoch(event.step, event.epoch, event.learning_rate);
}

void WriteMetrics::write_step(const StepEvent& event) {
  const double time = seconds();
  const double rate = static_cast<double>(logged_samples_) / std::max(kShortest, time - logged_at_);
  if (files_.metrics() != nullptr) {
    MetricsRecord record = record_of(event.totals, event.learning_rate, rate);
    record.step = event.step;
    record.epoch = event.epoch;
    record.split = "train";
    record.extra = communication(trainer_.times());
    if (event.totals.noise_scale) record.extra["noise_scale"] = *event.totals.noise_scale;
    if (trainer_.skipped() > 0) record.extra["skipped"] = trainer_.skipped();
    files_.write(record);
  }
  logged_at_ = time;
  logged_samples_ = 0;
}

void WriteMetrics::write_epoch(std::int64_t step, std::int64_t epoch, double learning_rate) {
  if (files_.metrics() == nullptr) return;
  const EpochSums& sums = record_.epoch;
  const double took = std::max(kShortest, seconds() - epoch_began_);
  const Totals totals{
      .loss = sums.mean_loss(), .weight = sums.weight, .samples = sums.samples, .metrics = sums.metrics};
  MetricsRecord record = record_of(totals, learning_rate, static_cast<double>(epoch_samples_) / took);
  record.step = step;
  record.epoch = epoch;
  record.split = "epoch";
  record.extra["samples"] = totals.samples;
  if (sums.after) record.extra["after_step"] = *sums.after;
  files_.write(record);
}

void WriteMetrics::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  if (files_.metrics() == nullptr || !event.scheduled || !event.totals.whole) return;
  const double rate = static_cast<double>(event.totals.samples) / std::max(kShortest, event.seconds);
  MetricsRecord record = record_of(event.totals, event.learning_rate, rate);
  record.step = event.step;
  record.epoch = event.epoch;
  record.split = "eval";
  files_.write(record);
  for (const auto& [name, totals] : event.more) {
    record.loss = totals.loss;
    record.metrics = totals.metrics;
    record.split = "eval:" + name;
    files_.write(record);
  }
}

MetricsRecord WriteMetrics::record_of(const Totals& totals, double learning_rate, double samples_per_second) const {
  return {.loss = totals.loss,
          .metrics = totals.metrics,
          .lr = learning_rate,
          .samples_per_second = samples_per_second,
          .seconds = seconds()};
}

}  // namespace lockstep::train
