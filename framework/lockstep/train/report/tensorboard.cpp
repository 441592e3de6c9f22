#include "lockstep/train/report/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

constexpr const char* kTensorboardFolder = "tensorboard";

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "host";
}

}  // namespace

TensorboardWriter::TensorboardWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step,
                                     bool enabled)
    : output_(std::move(output)), enabled_(enabled) {
  if (!resumed_step) move_aside();
  if (enabled_) open(resumed_step);
}

void TensorboardWriter::move_aside() const {
  if (!output_->has(kTensorboardFolder)) return;
  std::string aside;
  for (int n = 1; aside.empty() || output_->has(aside); ++n) aside = fmt::format("{}.{}", kTensorboardFolder, n);
  output_->move(kTensorboardFolder, *output_, aside);
}

void TensorboardWriter::open(std::optional<std::int64_t> resumed_step) {
  static int files = 0;  // opened by this process: after a rollback another one in the same second
  const double now = unix_time();
  const io::Folder folder = output_->make(kTensorboardFolder);
  name_ =
      fmt::format("events.out.tfevents.{}.{}.{}.{}", static_cast<std::int64_t>(now), this_host(), ::getpid(), files++);
  file_.open(folder.open_file(name_, io::FileUse::Append, kTensorboardFolder), folder.path() / name_);
  file_.append(event_record(version_event(now)));
  if (resumed_step) file_.append(event_record(start_event(now, *resumed_step + 1)));
}

void TensorboardWriter::follow(const std::shared_ptr<const io::Folder>& output) {
  output_ = output;
  if (!enabled_) return;
  const auto folder = output_->find_inside(kTensorboardFolder);
  if (folder && folder->holds(name_, file_.descriptor())) return;
  open({});
  log()->warn("[tensorboard] its file was removed or replaced during the run; further records go to {}",
              (output_->path() / kTensorboardFolder / name_).string());
}

void TensorboardWriter::write(std::int64_t step, const ProtobufMessage& summary) {
  if (enabled_ && !summary.bytes().empty()) file_.append(event_record(summary_event(unix_time(), step, summary)));
}

void TensorboardWriter::scalars(const MetricsRecord& record) {
  if (!enabled_) return;
  ProtobufMessage summary;
  const auto add = [&](std::string_view name, double value) {
    add_scalar(summary, fmt::format("{}/{}", record.split, name), value);
  };
  add("loss", record.loss);
  for (const MetricResult& metric : record.metrics) {
    if (metric.results.size() == 1) add(metric.name, metric.results[0]);
  }
  add("samples_per_second", record.samples_per_second);
  if (record.split == "train") add("lr", record.lr);
  for (const auto& field : record.extra.items()) {
    if (field.value().is_number()) add(field.key(), field.value().get<double>());
  }
  write(record.step, summary);
}

void TensorboardWriter::text(std::int64_t step, std::string_view tag, std::string_view markdown) {
  ProtobufMessage summary;
  add_text(summary, tag, markdown);
  write(step, summary);
}

void TensorboardWriter::histogram(std::int64_t step, std::string_view tag, std::span<const double> values) {
  ProtobufMessage summary;
  add_histogram(summary, tag, values);
  write(step, summary);
}

}  // namespace lockstep::train
