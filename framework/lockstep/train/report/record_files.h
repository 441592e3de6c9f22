// The files of records that --logger names beside metrics.jsonl and DLLogger's: a table, Prometheus' text file and
// TensorBoard's event files. All get the same records. For rank 0, in one thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lockstep/graph/metric.h"
#include "lockstep/train/report/csv_records.h"
#include "lockstep/train/report/prometheus.h"
#include "lockstep/train/report/record_kinds.h"
#include "lockstep/train/report/tensorboard.h"

namespace lockstep::train {

class RecordFiles {
 public:
  // Sets the files of an earlier run aside, or continues them after `resumed_step`.
  RecordFiles(const std::shared_ptr<const io::Folder>& output, std::optional<std::int64_t> resumed_step,
              const RecordKinds& kinds)
      : csv_(output, resumed_step, kinds.csv),
        prometheus_(output, kinds.prometheus),
        tensorboard_(output, resumed_step, kinds.tensorboard) {}

  // Throws Error if files of an earlier run cannot be continued, or, where a resumed run `continues` them, are of a
  // model with other metrics. Changes nothing.
  static void check_files(const io::Folder& output, const RecordKinds& kinds, std::span<const MetricRule> metrics,
                          bool continues) {
    CsvRecords::check_file(output);
    if (kinds.csv && continues) CsvRecords::check_columns(output, metrics);
  }

  // To be called before the first record: the id of the run, and the metrics of its model.
  void begin(const std::string& run, std::span<const MetricRule> metrics) {
    prometheus_.name_run(run);
    csv_.begin(metrics);
  }
  void write(const MetricsRecord& record) {
    csv_.write(record);
    prometheus_.write(record);
    tensorboard_.scalars(record);
  }
  TensorboardWriter& tensorboard() { return tensorboard_; }
  void follow(const std::shared_ptr<const io::Folder>& output) {
    csv_.follow(output);
    prometheus_.follow(output);
    tensorboard_.follow(output);
  }

 private:
  CsvRecords csv_;
  PrometheusFile prometheus_;
  TensorboardWriter tensorboard_;
};

}  // namespace lockstep::train
