// Writes OUTPUT/metrics.jsonl: one JSON object per line, for each logged step, epoch and evaluation, flushed at once.
// Numbers are printed so that reading them gives the same bits; a number that is not finite is null, because JSON has
// no other form. For rank 0, in one thread. Throws Error if the file cannot be read or written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/report/json_lines.h"
#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {

struct MetricsRecord {
  std::int64_t step = 0;  // updates done
  std::int64_t epoch = 0;
  std::string split = "train";             // "train", "epoch" or "eval"
  double loss = 0;                         // mean over the samples
  std::vector<MetricResult> metrics = {};  // several results are an array, a table an array of rows
  double lr = 0;
  double samples_per_second = 0;
  double seconds = 0;                                               // time since training began
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();  // further fields, after these
};

// Adds the results of metrics to a record, by name: a number, or an array of several results.
void add_results(std::span<const MetricResult> metrics, nlohmann::ordered_json& record);

class MetricsWriter {
 public:
  // Opens the file. Without `resumed_step`, begins a new run and moves metrics of an earlier one to metrics.1.jsonl and
  // so on; with it, continues after that step (see JsonLines).
  MetricsWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);
  MetricsWriter(const std::filesystem::path& output, std::optional<std::int64_t> resumed_step);  // makes the folder

  // Throws Error if the file of an earlier run cannot be continued. Changes nothing.
  static void check_file(const io::Folder& output);

  // Writes a record and returns true, unless the file already contains it from before the resumed step.
  bool write(const MetricsRecord& record);

  // See JsonLines::follow().
  void follow(const std::shared_ptr<const io::Folder>& output) { lines_.follow(output); }

  std::filesystem::path file() const { return lines_.path(); }

 private:
  JsonLines open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);
  std::map<std::string, std::int64_t> kept_;  // last step in the file, by split
  JsonLines lines_;
};

}  // namespace lockstep::train
