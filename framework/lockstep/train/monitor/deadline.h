// When a run has to stop so that its last checkpoint is on disk before a scheduler kills it: a limit, and before it a
// margin for what stopping takes, which is learnt from the run. A value; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::train {

// Seconds of "01:30:00", "2-12:00:00" (days first, as Slurm writes), "90m", "45s", "2h", "1.5d". Throws Error, naming
// `option`, for anything else, a plain number too: programs differ in whether it means minutes or seconds.
double parse_duration(const std::string& text, const std::string& option);

struct DeadlineOptions {
  using Clock = std::chrono::steady_clock;
  std::string limit = "auto";   // a duration since `began`; auto: when Slurm ends the job; none
  std::string margin = "auto";  // a duration, or learnt
  Clock::time_point began = Clock::now();
  double checkpoint_seconds = 0;  // what writing one may take, until one was written
  // Reads an environment variable; std::nullopt if it is unset.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

class Deadline {
 public:
  using Clock = DeadlineOptions::Clock;

  Deadline() = default;  // none
  explicit Deadline(const DeadlineOptions& options);

  // Called once per step, it learns from the time between two calls how long a step takes.
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
