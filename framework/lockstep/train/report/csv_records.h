// Writes OUTPUT/metrics.csv: the records of metrics.jsonl as a table (RFC 4180) with one header line, for spreadsheets
// and readers of tables. Metrics with several results are not in it. A number that is not finite is nan, inf or -inf,
// and what a record does not have is an empty field. For rank 0, in one thread. Throws Error if the file cannot be read
// or written, and if a resumed run has other columns.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/graph/metric.h"
#include "lockstep/train/report/json_lines.h"
#include "lockstep/train/report/metrics.h"

namespace lockstep::train {

class CsvRecords {
 public:
  // Moves the file of an earlier run aside, or, with `resumed_step`, removes rows of later updates (see JsonLines).
  CsvRecords(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step, bool enabled);

  // Throws Error if the file of an earlier run cannot be continued. Changes nothing.
  static void check_file(const io::Folder& output);
  // Throws Error if the file has other columns than the table of a model with these metrics. Changes nothing.
  static void check_columns(const io::Folder& output, std::span<const MetricRule> metrics);

  bool enabled() const { return enabled_; }
  // Writes the header for a model with these metrics, unless the file has it.
  void begin(std::span<const MetricRule> metrics);
  void write(const MetricsRecord& record);
  // See JsonLines::follow(); a new file gets the header.
  void follow(const std::shared_ptr<const io::Folder>& output);

 private:
  JsonLines open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);

  bool enabled_;
  std::string header_;  // of the file
  std::vector<std::string> metrics_;
  JsonLines lines_;
};

}  // namespace lockstep::train
