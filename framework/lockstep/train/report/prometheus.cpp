#include "lockstep/train/report/prometheus.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::train {
namespace {

constexpr const char* kPrometheusName = "metrics.prom";
constexpr std::chrono::seconds kPrometheusPause{1};

struct PrometheusHelp {
  const char *name, *type, *text;
};
constexpr std::array kPrometheusHelp{
    PrometheusHelp{"lockstep_updates_total", "counter", "Updates done."},
    PrometheusHelp{"lockstep_skipped_updates_total", "counter", "Updates that guards have skipped."},
    PrometheusHelp{"lockstep_epoch", "gauge", "Epoch, counted from 1."},
    PrometheusHelp{"lockstep_loss", "gauge", "Mean loss over the samples, by split."},
    PrometheusHelp{"lockstep_metric", "gauge", "Result of a metric of the model, by split."},
    PrometheusHelp{"lockstep_learning_rate", "gauge", "Learning rate per update."},
    PrometheusHelp{"lockstep_samples_per_second", "gauge", "Samples of all ranks per second, by split."},
    PrometheusHelp{"lockstep_run_seconds", "gauge", "Seconds since this start of the program began to train."},
    PrometheusHelp{"lockstep_compute_seconds", "gauge", "Computing of rank 0 in the last logged update."},
    PrometheusHelp{"lockstep_waiting_seconds", "gauge", "Waiting of rank 0 in the last logged update."},
    PrometheusHelp{"lockstep_network_seconds", "gauge", "Network time of gradients in the last logged update."},
    PrometheusHelp{"lockstep_network_hidden_seconds", "gauge", "Network time that was hidden behind computing."},
    PrometheusHelp{"lockstep_network_bytes", "gauge", "Bytes that rank 0 has sent in the last logged update."},
    PrometheusHelp{"lockstep_slowest_rank", "gauge", "Rank that was the last to bring its gradients."},
    PrometheusHelp{"lockstep_slowest_lead_seconds", "gauge", "Seconds by which that rank was slower than the fastest."},
    PrometheusHelp{"lockstep_noise_scale_samples", "gauge", "Gradient noise scale."},
    PrometheusHelp{"lockstep_last_record_timestamp_seconds", "gauge", "Unix time of the last record."}};

// The names of fields of MetricsRecord::extra.
constexpr std::array<std::pair<const char*, const char*>, 9> kPrometheusFields{
    {{"compute_seconds", "lockstep_compute_seconds"},
     {"waiting_seconds", "lockstep_waiting_seconds"},
     {"network_seconds", "lockstep_network_seconds"},
     {"network_hidden_seconds", "lockstep_network_hidden_seconds"},
     {"network_bytes", "lockstep_network_bytes"},
     {"slowest_rank", "lockstep_slowest_rank"},
     {"slowest_lead_seconds", "lockstep_slowest_lead_seconds"},
     {"noise_scale", "lockstep_noise_scale_samples"},
     {"skipped", "lockstep_skipped_updates_total"}}};

std::string prometheus_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

std::string label_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text.append("\\n");
    else
      text += c;
  }
  return text + '"';
}

PrometheusFile::PrometheusFile(std::shared_ptr<const io::Folder> output, bool enabled)
    : folder_(std::move(output)), enabled_(enabled) {
  folder_->remove(kPrometheusName);
}

PrometheusFile::~PrometheusFile() {
  if (changed_) write_out();
}

void PrometheusFile::write(const MetricsRecord& record) {
  if (!enabled_) return;
  using std::chrono::system_clock;
  const std::string split = "split=" + label_text(record.split);
  set("lockstep_updates_total", "", static_cast<double>(record.step));
  set("lockstep_epoch", "", static_cast<double>(record.epoch));
  set("lockstep_loss", split, record.loss);
  set("lockstep_learning_rate", "", record.lr);
  set("lockstep_samples_per_second", split, record.samples_per_second);
  set("lockstep_run_seconds", "", record.seconds);
  set("lockstep_last_record_timestamp_seconds", "",
      std::chrono::duration<double>(system_clock::now().time_since_epoch()).count());
  for (const MetricResult& metric : record.metrics) {
    if (metric.results.size() != 1) continue;
    set("lockstep_metric", fmt::format("{},metric={}", split, label_text(metric.name)), metric.results[0]);
  }
  for (const auto& [field, name] : kPrometheusFields) {
    const auto value = record.extra.find(field);
    if (value != record.extra.end() && value->is_number()) set(name, "", value->get<double>());
  }
  changed_ = true;
  if (Clock::now() < next_) return;
  write_out();
  next_ = Clock::now() + kPrometheusPause;
}

std::string PrometheusFile::text() const {
  std::string text;
  const std::string run = "run=" + label_text(run_);
  for (const PrometheusHelp& help : kPrometheusHelp) {
    const auto values = values_.find(help.name);
    if (values == values_.end()) continue;
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", help.name, help.text, help.type);
    for (const auto& [labels, value] : values->second)
      text +=
          fmt::format("{}{{{}{}{}}} {}\n", help.name, run, labels.empty() ? "" : ",", labels, prometheus_number(value));
  }
  return text;
}

void PrometheusFile::write_out() {
  const std::string all = text();
  changed_ = false;
  try {
    io::replace_file(*folder_, kPrometheusName, all, "prometheus");
    failed_ = false;
  } catch (const Error& error) {
    if (!std::exchange(failed_, true))
      log()->warn("[prometheus] {}; training goes on, next try with the next record", error.what());
  }
}

}  // namespace lockstep::train
