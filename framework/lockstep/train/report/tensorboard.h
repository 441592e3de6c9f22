// Writes OUTPUT/tensorboard/events.out.tfevents.TIME.HOST.PROCESS, which TensorBoard opens: the records of
// metrics.jsonl as scalars, histograms of weights, and the options as text. A resumed run writes a further file, whose
// first event tells readers which later steps to drop. For rank 0, in one thread. Throws Error if the file cannot be
// made; if the disk is full later, see PatientFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"
#include "lockstep/train/report/event_file.h"
#include "lockstep/train/report/metrics.h"
#include "lockstep/train/report/patient_file.h"

namespace lockstep::train {

class TensorboardWriter {
 public:
  // In a new run, moves the folder of an earlier run aside, to tensorboard.1 and so on. Writes only if `enabled`.
  TensorboardWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step, bool enabled);

  bool enabled() const { return enabled_; }
  void scalars(const MetricsRecord& record);  // with tags SPLIT/NAME
  void text(std::int64_t step, std::string_view tag, std::string_view markdown);
  void histogram(std::int64_t step, std::string_view tag, std::span<const double> values);
  // Continues in a further file if the open one was removed or its folder is not the run's any more.
  void follow(const std::shared_ptr<const io::Folder>& output);

 private:
  void move_aside() const;
  void open(std::optional<std::int64_t> resumed_step);
  void write(std::int64_t step, const ProtobufMessage& summary);

  std::shared_ptr<const io::Folder> output_;
  bool enabled_;
  std::string name_;  // of the file in the folder
  PatientFile file_{"tensorboard", "record"};
};

}  // namespace lockstep::train
