// OUTPUT/metrics.jsonl: one JSON object per logged step, per epoch and per evaluation, each on a line, flushed as it is
// written.
// Numbers are printed so that reading them back gives the same bits; what is not finite is null, as JSON has no word
// for it. For rank 0 alone, from one thread. Throws Error where the file cannot be read or written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/train/report/json_lines.h"

namespace lockstep::train {

struct MetricsRecord {
  std::int64_t step = 0;  // updates done
  std::int64_t epoch = 0;
  std::string split = "train";  // "train", "epoch" or "eval"
  double loss = 0;              // mean over the samples
  double accuracy = 0;          // 0 to 1
  double lr = 0;
  double samples_per_second = 0;
  double seconds = 0;                                               // since training began
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();  // further fields, after these
};

class MetricsWriter {
 public:
  // Without `resumed_step` this is a new run: metrics of an earlier one in the same folder are moved aside, to
  // metrics.1.jsonl and so on. With it, the run goes on after that step, as JsonLines says.
  MetricsWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);
  MetricsWriter(const std::filesystem::path& output, std::optional<std::int64_t> resumed_step);  // makes the folder

  // Throws Error if this file of an earlier run cannot be gone on with. Changes nothing.
  static void check_file(const io::Folder& output);

  // A record that stands in the file already, from before the resumed step, is not written a second time.
  void write(const MetricsRecord& record);

  // As JsonLines::follow().
  void follow(const std::shared_ptr<const io::Folder>& output) { lines_.follow(output); }

  std::filesystem::path file() const { return lines_.path(); }

 private:
  JsonLines open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);
  std::map<std::string, std::int64_t> kept_;  // last step in the file, by split
  JsonLines lines_;
};

}  // namespace lockstep::train
