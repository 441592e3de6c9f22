#include "lockstep/train/monitor/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

// Time that a program needs to end after its checkpoint: for MPI_Finalize and the launcher.
constexpr double kTeardown = 30, kTeardownPart = 0.1;  // seconds, and the largest part of a short limit
constexpr double kLongest = 1e9;                       // seconds (31 years), which a clock in ns can count

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

std::optional<double> with_unit(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const double unit = text.back() == 's'   ? 1
                      : text.back() == 'm' ? 60
                      : text.back() == 'h' ? 3600
                      : text.back() == 'd' ? 86400
                                           : 0;
  const auto value = number_in(text.substr(0, text.size() - 1));
  return unit > 0 && value ? std::optional(*value * unit) : std::nullopt;
}

// Parses [D-]HH:MM:SS or MM:SS, as Slurm writes them.
std::optional<double> with_colons(std::string_view text) {
  double days = 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != text.npos;
  if (has_days) {
    const auto value = number_in(text.substr(0, dash));
    if (!value) return std::nullopt;
    days = *value;
    text.remove_prefix(dash + 1);
  }
  std::array<double, 3> parts{};
  const std::size_t first = !has_days && std::count(text.begin(), text.end(), ':') == 1 ? 1 : 0;
  for (std::size_t i = first; i < 3; ++i) {
    const std::size_t colon = text.find(':');
    const auto value = number_in(text.substr(0, colon));
    if (!value || (colon == text.npos) != (i == 2) || (i > first && *value >= 60)) return std::nullopt;
    parts[i] = *value;
    text.remove_prefix(colon == text.npos ? text.size() : colon + 1);
  }
  return 86400 * days + 3600 * parts[0] + 60 * parts[1] + parts[2];
}

}  // namespace

double parse_duration(const std::string& text, const std::string& option) {
  std::optional<double> seconds = with_colons(text);
  if (!seconds) seconds = with_unit(text);
  check(seconds.has_value() && *seconds <= kLongest, "options",
        "--{} is '{}', expected HH:MM:SS, MM:SS, D-HH:MM:SS, or a number with its unit such as 45s, 90m, 2h or 1d",
        option, text);
  return *seconds;
}

RunTime parse_run_time(const std::string& limit, const std::string& margin) {
  RunTime time{.follows_slurm = limit == "auto"};
  if (limit != "auto" && limit != "none") {
    time.limit = parse_duration(limit, "time-limit");
    time.source = "--time-limit " + limit;
  }
  if (margin != "auto") time.margin = parse_duration(margin, "time-margin");
  check(!time.limit || !time.margin || *time.margin < *time.limit, "options",
        "--time-margin is {} with --time-limit {}, expected less: the run would stop before its first step", margin,
        limit);
  return time;
}

Deadline::Deadline(const DeadlineOptions& options)
    : fixed_margin_(options.time.margin), checkpoint_(options.checkpoint_seconds) {
  double limit = 0;
  if (options.time.limit) {
    limit = *options.time.limit;
    end_ = options.began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
    source_ = options.time.source;
  } else if (!options.time.follows_slurm) {
    return;
  } else if (const auto slurm = options.variable ? options.variable("SLURM_JOB_END_TIME") : std::nullopt) {
    const auto end = number_in(*slurm);
    check(end.has_value(), "time limit",
          "SLURM_JOB_END_TIME is '{}', expected seconds since 1970; pass --time-limit none "
          "to ignore it",
          *slurm);
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    limit = std::min(*end - now.count(), kLongest);
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
    source_ = "Slurm's end of the job";
  }
  floor_ = std::clamp(kTeardownPart * limit, 0.0, kTeardown);
}

// The margin includes two further steps: the deadline is checked once per step, and ranks agree in the next one.
double Deadline::margin() const { return fixed_margin_.value_or(floor_ + 3 * step_ + 2 * checkpoint_); }

bool Deadline::reached(Clock::time_point now) {
  if (!end_) return false;
  // The slowest recent step: the weight of a slow step fades within some hundred steps.
  if (last_) step_ = std::max(0.99 * step_, std::chrono::duration<double>(now - *last_).count());
  last_ = now;
  return remaining(now) <= margin();
}

void Deadline::checkpoint_took(double seconds) {
  checkpoint_ = measured_ ? std::max(checkpoint_, seconds) : seconds;
  measured_ = true;
}

}  // namespace lockstep::train
