// Computes when a run must stop so that its last checkpoint is on the disk before a scheduler kills the job: a time
// limit, and before it a margin for stopping, which is estimated from the run. A value; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::train {

// Returns the seconds of "01:30:00", "2-12:00:00" (days first, as Slurm writes), "90m", "45s", "2h", "1.5d". Throws
// Error with `option` for other texts, also for a plain number: programs differ in whether that means minutes or
// seconds.
double parse_duration(const std::string& text, const std::string& option);

// The time of a run, in seconds.
struct RunTime {
  bool follows_slurm = true;       // without a limit of its own the run has the end of the Slurm job, if there is one
  std::optional<double> limit{};   // since the start
  std::optional<double> margin{};  // between the stop and the limit; std::nullopt: estimated
  std::string source{};            // of the limit: "--time-limit 2h"

  bool operator==(const RunTime&) const = default;
};

// Reads --time-limit (auto: the end of the Slurm job; none; or a duration) and --time-margin (auto or a duration).
// Throws Error as parse_duration(), and for a margin that leaves no time before the limit.
RunTime parse_run_time(const std::string& limit, const std::string& margin);

struct DeadlineOptions {
  using Clock = std::chrono::steady_clock;
  RunTime time = {};
  Clock::time_point began = Clock::now();
  double checkpoint_seconds = 0;  // estimate for writing a checkpoint, until one was written
  // Reads an environment variable; std::nullopt if it is unset.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

class Deadline {
 public:
  using Clock = DeadlineOptions::Clock;

  Deadline() = default;  // no limit
  explicit Deadline(const DeadlineOptions& options);

  // Returns whether the run must stop now. Call it once per step: it measures a step's duration between two calls.
  bool reached(Clock::time_point now);
  void checkpoint_took(double seconds);

  bool exists() const { return end_.has_value(); }
  double remaining(Clock::time_point now) const { return std::chrono::duration<double>(*end_ - now).count(); }
  double margin() const;  // seconds
  const std::string& source() const { return source_; }

 private:
  std::optional<Clock::time_point> end_, last_;
  std::optional<double> fixed_margin_;
  double floor_ = 0, step_ = 0, checkpoint_ = 0;
  bool measured_ = false;
  std::string source_;
};

}  // namespace lockstep::train
