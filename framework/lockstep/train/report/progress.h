// How far training is: on a terminal a bar with rate and time left that stays below the log, elsewhere a plain line
// every `log_every` updates and at the end of each epoch. An evaluation has a bar too, and elsewhere a line every ten
// seconds. The plain lines go to the rank's log file in both cases. One thread per Progress; the Log must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/train/report/log.h"

namespace lockstep::train {

// Where training stands after an update.
struct ProgressState {
  std::int64_t epoch = 1;          // the one being trained, from 1
  std::int64_t step_in_epoch = 0;  // updates done in it
  std::int64_t step = 0;           // updates done in all
  std::int64_t samples = 0;        // over all ranks, in the updates since the last report
  double loss = 0, accuracy = 0, lr = 0;
};

struct ProgressOptions {
  std::int64_t epochs = 0;           // 0: not known
  std::int64_t steps_per_epoch = 0;  // 0: not known
  std::int64_t total_steps = 0;      // at which the run ends; 0: not known
  std::int64_t log_every = 50;       // updates; 0: ends of epochs only
  std::function<double()> now{};     // seconds; empty: the steady clock
};

class Progress {
 public:
  Progress(Log& log, ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);        // after every update
  void finish_epoch(const ProgressState& state);  // after an epoch's last update(); its `samples` are not looked at
  void pause();  // evaluation or a checkpoint follows: the time until the next update() does not count

  void begin_evaluation(std::int64_t total);  // samples; a pause
  void evaluated(std::int64_t samples);       // of all, until now
  void end_evaluation();

  double samples_per_second() const;  // over about the last ten seconds of training; 0 before the second update
  double seconds_left() const;        // of training; negative: not known

 private:
  void measure(const ProgressState& state);
  void print(const std::string& line);
  bool has_bar() const { return log_.talks() && log_.console().has_status(); }
  Log& log_;
  ProgressOptions options_;
  bool running_ = false;                          // whether last_ is a time from which to count
  double last_ = 0, drawn_ = -1;                  // seconds
  double seconds_ = 0, samples_ = 0, steps_ = 0;  // sums with fading weight
  std::int64_t step_ = 0;
  double evaluation_began_ = 0, evaluation_said_ = 0;  // seconds
  std::int64_t to_evaluate_ = 0;                       // samples
};

// "1:05", "2:03:04", "1d 02:03".
std::string duration_text(double seconds);

// One line for a terminal of `columns`: what does not fit is left out, the least needed first; shorter than `columns`.
std::string bar_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                     double seconds_left, int columns);

// The same of an evaluation.
std::string evaluation_bar_text(std::int64_t done, std::int64_t total, double seconds_left, int columns);

// The same for files and pipes, whole.
std::string line_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                      double seconds_left);

}  // namespace lockstep::train
