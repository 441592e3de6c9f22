// Shows the progress of training: on a terminal, a bar with rate and remaining time below the log; elsewhere, a line
// every `log_every` updates and at the end of each epoch. An evaluation has a bar too, or a line every ten seconds. The
// lines go to the rank's log file in both cases. One thread per Progress; the Log must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/report/log.h"
#include "lockstep/train/report/metric_result.h"

namespace lockstep::train {

// The position of training after an update.
struct ProgressState {
  std::int64_t epoch = 1;          // the present epoch, from 1
  std::int64_t step_in_epoch = 0;  // updates done in this epoch
  std::int64_t step = 0;           // updates done in total
  std::int64_t samples = 0;        // samples of all ranks in the updates since the last report
  double loss = 0;
  std::vector<MetricResult> metrics = {};
  double lr = 0;
  std::optional<double> noise_scale = {};  // Totals::noise_scale
};

struct ProgressOptions {
  std::int64_t epochs = 0;           // 0: not known
  std::int64_t steps_per_epoch = 0;  // 0: not known
  std::int64_t total_steps = 0;      // updates at which the run ends; 0: not known
  std::int64_t log_every = 50;       // updates between lines; 0: only at the end of an epoch
  std::function<double()> now{};     // returns seconds; empty: the steady clock
};

class Progress {
 public:
  Progress(Log& log, ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);        // call it after every update
  void finish_epoch(const ProgressState& state);  // call it after an epoch's last update(); ignores state.samples
  void pause();  // before an evaluation or a checkpoint: the time until the next update() does not count

  void begin_evaluation(std::int64_t total);  // also pauses; `total`: number of samples
  void evaluated(std::int64_t samples);       // number of samples that are evaluated so far
  void end_evaluation();

  double samples_per_second() const;  // average of about the last ten seconds of training; 0 before the second update
  double seconds_left() const;        // remaining time of training; negative: not known

 private:
  void measure(const ProgressState& state);
  void print(const std::string& line);
  bool has_bar() const { return log_.talks() && log_.console().has_status(); }
  Log& log_;
  ProgressOptions options_;
  bool running_ = false;                          // true: last_ is valid
  double last_ = 0, drawn_ = -1;                  // seconds
  double seconds_ = 0, samples_ = 0, steps_ = 0;  // sums with fading weight
  std::int64_t step_ = 0;
  double evaluation_began_ = 0, evaluation_said_ = 0;  // seconds
  std::int64_t to_evaluate_ = 0;                       // samples
};

// Returns "epoch 1/3  step 50/282"; unknown totals are left out.
std::string position_text(std::int64_t epoch, std::int64_t step, const ProgressOptions& options);

// Formats a duration: "1:05", "2:03:04", "1d 02:03".
std::string duration_text(double seconds);

// Returns one line for a terminal of `columns`, shorter than `columns`; omits the least important parts if there is too
// little room.
std::string bar_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                     double seconds_left, int columns);

// Returns such a line for an evaluation.
std::string evaluation_bar_text(std::int64_t done, std::int64_t total, double seconds_left, int columns);

// Returns the complete line, for files and pipes.
std::string line_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                      double seconds_left);

}  // namespace lockstep::train
