// The events that the logs of a run tell for a report: starts, resumes, faults and warnings with the update at which
// they came, and host and memory of each rank. Reads on as the run writes. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/train/report/log_merge.h"

namespace lockstep::tools {

class RunEvents {
 public:
  explicit RunEvents(std::filesystem::path run) : run_(std::move(run)) {}

  // Reads the lines that were written since the last call; returns whether there were any. A run without log files has
  // no events.
  bool update();

  // Returns an array of {step, time, kind, text, rank, host, count}, in the order of times. Kinds: start, resume, stop,
  // fault, warning. Equal texts at one step are one event with their count; of more than kMost events the first and the
  // last ones remain.
  nlohmann::ordered_json events() const;
  std::int64_t left_out() const { return left_out_; }  // events that events() does not have
  // Returns an array of {rank, host, memory_mib, warnings, errors}, by rank; memory_mib is null while the rank runs.
  nlohmann::ordered_json ranks() const;

  static constexpr std::size_t kMost = 1000;

 private:
  struct Event {
    std::int64_t step;
    std::string time, kind, text;
    int rank;  // -1: the supervisor
    std::string host;
    std::int64_t count;
  };
  struct Rank {
    std::string host;
    double memory_mib = -1;  // below 0: not known
    std::int64_t warnings = 0, errors = 0;
  };
  void add(const train::LogLine& line);
  void add_event(const train::LogLine& line, const std::string& kind);
  void begin_run();

  std::filesystem::path run_;
  std::unique_ptr<train::LogFiles> files_;
  std::vector<Event> events_;
  std::map<int, Rank> ranks_;
  std::int64_t step_ = 0, left_out_ = 0;  // step_: the last that rank 0 has logged
  bool resumed_ = false;                  // the last start is a resume whose id was not logged yet
};

// Returns the step of a progress line, "epoch 1/3  step 50/282  loss ...", or -1.
std::int64_t step_of_progress(const std::string& text);

}  // namespace lockstep::tools
