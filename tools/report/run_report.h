// A run as the page of `lockstep report` and `lockstep watch` gets it: one JSON object of its metrics, events, ranks,
// options and profile. Its schema is tools/report/page/schema.json. One thread.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/report/metric_table.h"
#include "tools/report/run_events.h"

namespace lockstep::tools {

class RunReport {
 public:
  // Throws Error if `run` is not the folder of a run.
  explicit RunReport(std::filesystem::path run);

  // Reads what the run has written since the last call; returns whether anything changed. Throws Error if a file cannot
  // be read.
  bool update();
  nlohmann::ordered_json json() const;

  // Adds the times of a file of --trace. Throws Error if it is none.
  void add_trace(const std::filesystem::path& file);

 private:
  std::filesystem::path run_;
  MetricTable metrics_;
  RunEvents events_;
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object(), trace_;  // null: no trace was named
  std::string facts_text_;
};

// Returns seconds by rank and track of a file in the Trace Event Format that --trace has written: an array of {rank,
// host, tracks}. Throws Error if the file is none.
nlohmann::ordered_json trace_times(const std::filesystem::path& file);

// Returns the whole document of some runs, for the page; `live`: the page asks for it again while it is shown.
nlohmann::ordered_json report_document(const std::vector<RunReport>& runs, bool live);

}  // namespace lockstep::tools
