#include "tools/supervisor/job.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <set>

#include "lockstep/core/error.h"
#include "tools/supervisor/failure_reader.h"
#include "tools/supervisor/process.h"

namespace lockstep::supervisor {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// What changes when a rank opens its log. Files that vanish meanwhile do not count.
std::map<fs::path, fs::file_time_type> log_times(const fs::path& output) {
  std::map<fs::path, fs::file_time_type> times;
  std::error_code error;
  for (fs::directory_iterator at(output / "logs", error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto time = at->last_write_time(gone);
    if (!gone && at->path().filename().string().starts_with("rank-")) times[at->path()] = time;
  }
  return times;
}

class Run {
 public:
  Run(const JobOptions& options, Signals& signals)
      : options_(options),
        signals_(signals),
        logs_before_(log_times(options.output)),
        process_(options.words, {.variables = options.variables}) {}

  JobEnd until_ended() {
    while (!process_.ended()) {
      std::array<pollfd, 2> files{{{signals_.descriptor(), POLLIN, 0}, {process_.output(), POLLIN, 0}}};
      // When the job has closed its stderr there is nothing to wait for there.
      const int ready = poll(files.data(), closed_ ? 1 : 2, 200);
      check(ready >= 0 || errno == EINTR, "run", "poll failed");
      closed_ = closed_ || (files[1].revents & (POLLHUP | POLLIN)) == POLLHUP;
      pass_output();
      while (const auto number = signals_.next()) pass_signal(*number);
      if (started_ && !end_.asked && !end_.stopped && options_.wants_stop && options_.wants_stop()) {
        end_.stopped = true;
        process_.signal(SIGUSR2);
      }
      watch_start();
    }
    pass_output();
    end_.status = *process_.ended();
    if (end_.failure.empty()) end_.failure = reader_.summary();
    end_.words = reader_.words();
    end_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return end_;
  }

 private:
  void pass_output() {
    const std::string text = process_.read();
    std::fwrite(text.data(), 1, text.size(), stderr);  // nobody to tell if it fails
    reader_.read(text);
  }

  void pass_signal(int number) {
    if (number == SIGUSR1) return pass_when_started(number);  // a checkpoint, please: launchers hand it on
    end_.asked = true;
    switch (++requests_) {
      case 1:
        return pass_when_started(SIGUSR2);
      case 2:
        return process_.signal(SIGTERM);
      default:
        return process_.signal(SIGKILL);
    }
  }

  // Processes that do not listen yet would die of it, and with them the job.
  void pass_when_started(int number) {
    if (started_)
      process_.signal(number);
    else
      held_.insert(number);
  }

  void watch_start() {
    if (started_ || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + std::chrono::milliseconds(500);
    started_ = log_times(options_.output) != logs_before_;
    if (started_) {
      for (const int number : held_) process_.signal(number);
    }
    const bool in_time = options_.start_limit.count() == 0 || Clock::now() < began_ + options_.start_limit;
    if (started_ || in_time || !end_.failure.empty()) return;
    end_.failure = fmt::format("no rank wrote to {} within {} s", (options_.output / "logs").string(),
                               options_.start_limit.count());
    process_.signal(SIGKILL);
  }

  const JobOptions& options_;
  Signals& signals_;
  std::map<fs::path, fs::file_time_type> logs_before_;
  Clock::time_point began_ = Clock::now(), next_look_ = began_;
  Process process_;
  FailureReader reader_;
  JobEnd end_;
  int requests_ = 0;
  std::set<int> held_;  // signals for when it has started
  bool started_ = false, closed_ = false;
};

}  // namespace

JobEnd run_job(const JobOptions& options, Signals& signals) { return Run(options, signals).until_ended(); }

}  // namespace lockstep::supervisor
