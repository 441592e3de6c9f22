#include "tools/supervisor/job.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <thread>

#include "lockstep/core/error.h"
#include "tools/supervisor/failure_reader.h"
#include "tools/supervisor/output_folder.h"
#include "tools/supervisor/process.h"

namespace lockstep::supervisor {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = Console::Stream;
using namespace std::chrono_literals;

constexpr auto kOftenAtFirst = 30s;     // in which looks are frequent
constexpr auto kListensAfter = 10s;     // a job that has printed for so long counts as started without files, too
constexpr auto kLastText = 30s;         // for a slow reader of what the job leaves in its pipes
constexpr std::int64_t kPollFor = 200;  // ms

// A terminal stays the job's own, so that the job can draw on the terminal.
ProcessOptions::Output output_of_job() {
  return isatty(STDOUT_FILENO) != 0 ? ProcessOptions::Output::Ours : ProcessOptions::Output::Apart;
}

class Run {
 public:
  Run(const JobOptions& options, Signals& signals, Console& console)
      : options_(options),
        signals_(signals),
        console_(console),
        before_(OutputFolder::stamps(options.output)),
        process_(options.words, {.output = output_of_job(), .variables = options.variables}) {}

  JobEnd until_ended() {
    while (!process_.ended()) {
      wait();
      pass_text();
      while (const auto number = signals_.next()) pass_signal(*number);
      if (started_ && !end_.asked && !end_.stopped && options_.wants_stop && options_.wants_stop()) {
        end_.stopped = true;
        process_.signal(stop_signal());
      }
      watch_start();
      look();
    }
    if (options_.look) options_.look();
    pass_last_text();
    end_.status = *process_.ended();
    if (end_.failure.empty()) end_.failure = readers_.errors.summary();
    if (end_.failure.empty()) end_.failure = readers_.output.summary();
    end_.words = readers_.errors.words();
    end_.lost_host = readers_.errors.lost_host();
    end_.seconds = std::chrono::duration<double>(Clock::now() - times_.began).count();
    return end_;
  }

 private:
  bool is_hydra() const { return options_.launcher == launch::MpirunKind::Hydra; }
  int stop_signal() const { return is_hydra() ? SIGTERM : SIGUSR2; }

  // Where the job has closed a stream, or its text is not wanted now, there is nothing to wait for; poll() leaves
  // negative descriptors out.
  void wait() {
    const auto file = [&](Stream stream, int descriptor, bool closed) {
      return closed || !console_.takes(stream) ? -1 : descriptor;
    };
    std::array<pollfd, 3> files{{{signals_.descriptor(), POLLIN, 0},
                                 {file(Stream::Output, process_.output(), closed_.output), POLLIN, 0},
                                 {file(Stream::Errors, process_.errors(), closed_.errors), POLLIN, 0}}};
    const int ready = poll(files.data(), files.size(), kPollFor);
    check_call(ready >= 0 || errno == EINTR, "run", "poll");
    const auto closed = [](const pollfd& f) { return (f.revents & (POLLHUP | POLLIN)) == POLLHUP; };
    closed_.output = closed_.output || closed(files[1]);
    closed_.errors = closed_.errors || closed(files[2]);
  }

  void pass_text() {
    if (console_.takes(Stream::Output)) pass(Stream::Output, process_.read_output());
    if (console_.takes(Stream::Errors)) pass(Stream::Errors, process_.read());
  }

  // The bytes in the pipes when the job has ended, and no more of a process that outlives the job.
  void pass_last_text() {
    const auto until = Clock::now() + kLastText;
    const auto wait_for_reader = [&](Stream stream) {
      while (!console_.takes(stream) && Clock::now() < until) std::this_thread::sleep_for(10ms);
    };
    wait_for_reader(Stream::Output);
    pass(Stream::Output, process_.read_rest_of_output());
    wait_for_reader(Stream::Errors);
    pass(Stream::Errors, process_.read_rest());
  }

  void pass(Stream stream, const std::string& text) {
    if (text.empty()) return;
    if (!times_.printed) times_.printed = Clock::now();
    console_.pass(stream, text);
    if (stream == Stream::Errors) readers_.errors.read(text);
    if (stream == Stream::Output && is_hydra()) readers_.output.read(text);
  }

  void pass_signal(int number) {
    if (number == SIGUSR1) return pass_when_started(number);  // a checkpoint, please: launchers hand it on
    end_.asked = true;
    switch (++requests_) {
      case 1:
        return pass_when_started(stop_signal());
      case 2:
        return process_.signal(is_hydra() ? SIGKILL : SIGTERM);
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
    if (started_ || Clock::now() < times_.next_start_look) return;
    times_.next_start_look = Clock::now() + 500ms;
    const bool prints = times_.printed && Clock::now() > *times_.printed + kListensAfter;
    started_ = prints || OutputFolder::stamps(options_.output) != before_;
    if (started_) {
      for (const int number : held_) process_.signal(number);
    }
    const bool in_time = options_.start_limit.count() == 0 || Clock::now() < times_.began + options_.start_limit;
    if (started_ || times_.printed || in_time || !end_.failure.empty()) return;
    end_.failure = fmt::format("the job wrote nothing in {}, and printed nothing, within {} s",
                               options_.output.string(), options_.start_limit.count());
    process_.signal(SIGKILL);
  }

  void look() {
    if (!options_.look || Clock::now() < times_.next_look) return;
    options_.look();
    times_.next_look = Clock::now() + (Clock::now() < times_.began + kOftenAtFirst ? 500ms : 10'000ms);
  }

  struct Times {
    Clock::time_point began = Clock::now(), next_start_look = began, next_look = began;
    std::optional<Clock::time_point> printed{};
  };
  struct Readers {
    FailureReader errors, output;  // Hydra reports on stdout
  };
  struct Closed {
    bool output = false, errors = false;  // the job's streams
  };

  const JobOptions& options_;
  Signals& signals_;
  Console& console_;
  OutputFolder::Stamps before_;
  Times times_;
  Process process_;
  Readers readers_;
  JobEnd end_;
  int requests_ = 0;
  std::set<int> held_;  // signals for when it has started
  bool started_ = false;
  Closed closed_;
};

}  // namespace

JobEnd run_job(const JobOptions& options, Signals& signals, Console& console) {
  return Run(options, signals, console).until_ended();
}

}  // namespace lockstep::supervisor
