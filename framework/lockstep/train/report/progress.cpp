#include "lockstep/train/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace lockstep::train {
namespace {

constexpr double kMemory = 10;                // seconds after which a measurement weighs 1/e
constexpr double kRedraw = 0.1;               // seconds between two bars
constexpr double kEvaluationLine = 10;        // seconds between two lines of an evaluation
constexpr int kBarLeast = 10, kBarMost = 40;  // columns

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string of_total(std::int64_t done, std::int64_t total) {
  return total > 0 ? fmt::format("{}/{}", done, total) : fmt::format("{}", done);
}

std::string rate_text(double rate) {
  if (rate <= 0) return "";
  return rate < 10 ? fmt::format("{:.2f} samples/s", rate) : fmt::format("{:.0f} samples/s", rate);
}

std::string left_text(double seconds) { return seconds < 0 ? "" : "ETA " + duration_text(seconds); }

std::string bar(double part, int width) {
  const int inner = width - 2;
  const int filled = static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * inner));
  const bool head = filled > 0 && filled < inner;
  return fmt::format("[{:=<{}}{}{:{}}]", "", filled - (head ? 1 : 0), head ? ">" : "", "", inner - filled);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  const std::int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

std::string position_text(std::int64_t epoch, std::int64_t step, const ProgressOptions& options) {
  return fmt::format("epoch {}  step {}", of_total(epoch, options.epochs), of_total(step, options.total_steps));
}

std::string line_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                      double seconds_left) {
  const std::string metrics = metrics_text(state.metrics, "  ");
  std::string line = fmt::format("{}  loss {:.5g}{}{}  lr {:.4g}", position_text(state.epoch, state.step, options),
                                 state.loss, metrics.empty() ? "" : "  ", metrics, state.lr);
  if (state.noise_scale) line += fmt::format("  noise scale {:.4g}", *state.noise_scale);
  for (const std::string& part : {rate_text(samples_per_second), left_text(seconds_left)}) {
    if (!part.empty()) line += "  " + part;
  }
  return line;
}

std::string bar_text(const ProgressState& state, const ProgressOptions& options, double samples_per_second,
                     double seconds_left, int columns) {
  struct Part {
    std::string text;
    int need;  // parts with a lower number are omitted first
  };
  std::vector<Part> parts{{fmt::format("epoch {}", of_total(state.epoch, options.epochs)), 5},
                          {"", 1},  // the bar
                          {of_total(state.step_in_epoch, options.steps_per_epoch), 6},
                          {fmt::format("loss {:.4f}", state.loss), 4},
                          {metrics_text(state.metrics, "  "), 2},
                          {rate_text(samples_per_second), 0},
                          {left_text(seconds_left), 3}};
  constexpr std::size_t kBar = 1;
  const int room = std::max(0, columns - 1);
  const bool known = options.steps_per_epoch > 0;
  if (known) parts[kBar].text.assign(kBarLeast, ' ');
  std::erase_if(parts, [&](const Part& part) { return part.text.empty(); });
  const auto width = [&] {
    std::size_t sum = 0;
    for (const Part& part : parts) sum += part.text.size() + (sum > 0 ? 2 : 0);
    return static_cast<int>(sum);
  };
  while (parts.size() > 1 && width() > room) {
    parts.erase(
        std::min_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.need < b.need; }));
  }
  const int spare = room - width();
  std::string line;
  for (Part& part : parts) {
    if (part.need == 1) {
      const double done = static_cast<double>(state.step_in_epoch) / static_cast<double>(options.steps_per_epoch);
      part.text = bar(done, std::min(kBarMost, kBarLeast + std::max(0, spare)));
    }
    line += (line.empty() ? "" : "  ") + part.text;
  }
  return line.substr(0, static_cast<std::size_t>(room));
}

std::string evaluation_bar_text(std::int64_t done, std::int64_t total, double seconds_left, int columns) {
  const int room = std::max(0, columns - 1);
  const std::string head = "evaluation  ", left = left_text(seconds_left);
  const std::string tail = fmt::format("  {}{}{}", of_total(done, total), left.empty() ? "" : "  ", left);
  const int spare = room - static_cast<int>(head.size() + tail.size());
  const bool shows_bar = total > 0 && spare >= kBarLeast;
  const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  const std::string line = shows_bar ? head + bar(part, std::min(kBarMost, spare)) + tail : "evaluation" + tail;
  return line.substr(0, static_cast<std::size_t>(room));
}

Progress::Progress(Log& log, ProgressOptions options) : log_(log), options_(std::move(options)) {
  if (!options_.now) options_.now = steady_seconds;
}

Progress::~Progress() { log_.console().status(""); }

double Progress::samples_per_second() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }

double Progress::seconds_left() const {
  if (steps_ <= 0 || options_.total_steps <= 0) return -1;
  return static_cast<double>(std::max<std::int64_t>(0, options_.total_steps - step_)) * seconds_ / steps_;
}

// The first update after a start or a pause only sets the clock: its time may include planning, allocation and waiting.
void Progress::measure(const ProgressState& state) {
  const double now = options_.now();
  if (running_ && now >= last_) {
    const double fade = std::exp((last_ - now) / kMemory);
    seconds_ = seconds_ * fade + (now - last_);
    samples_ = samples_ * fade + static_cast<double>(state.samples);
    steps_ = steps_ * fade + static_cast<double>(std::max<std::int64_t>(0, state.step - step_));
  }
  running_ = true;
  last_ = now;
  step_ = state.step;
}

void Progress::print(const std::string& line) {
  log_.to_file(line);
  if (log_.talks()) log_.console().line(line);
}

void Progress::update(const ProgressState& state) {
  measure(state);
  const bool bar = has_bar();
  if (options_.log_every > 0 && state.step % options_.log_every == 0) {
    const std::string line = line_text(state, options_, samples_per_second(), seconds_left());
    bar ? log_.to_file(line) : print(line);
  }
  if (bar && last_ - drawn_ >= kRedraw) {
    drawn_ = last_;
    log_.console().status(bar_text(state, options_, samples_per_second(), seconds_left(), log_.console().columns()));
  }
}

void Progress::finish_epoch(const ProgressState& state) {
  log_.console().status("");
  drawn_ = -1;
  // If a line was due at the last update, update() has printed it already, unless it showed a bar instead.
  const bool printed = options_.log_every > 0 && state.step == step_ && state.step % options_.log_every == 0;
  const std::string line = line_text(state, options_, samples_per_second(), seconds_left());
  if (!printed) {
    print(line);
  } else if (has_bar()) {
    log_.console().line(line);
  }
  pause();
}

void Progress::pause() { running_ = false; }

void Progress::begin_evaluation(std::int64_t total) {
  pause();
  evaluation_began_ = evaluation_said_ = options_.now();
  to_evaluate_ = total;
  drawn_ = -1;
  evaluated(0);
}

void Progress::evaluated(std::int64_t samples) {
  const double now = options_.now(), took = now - evaluation_began_;
  const double rate = took > 0 ? static_cast<double>(samples) / took : 0;
  const auto open = static_cast<double>(std::max<std::int64_t>(0, to_evaluate_ - samples));
  const double left = rate > 0 ? open / rate : -1;
  if (now - evaluation_said_ >= kEvaluationLine) {
    evaluation_said_ = now;
    std::string line = fmt::format("evaluation  {} samples", of_total(samples, to_evaluate_));
    for (const std::string& part : {rate_text(rate), left_text(left)}) {
      if (!part.empty()) line += "  " + part;
    }
    has_bar() ? log_.to_file(line) : print(line);
  }
  if (has_bar() && (drawn_ < 0 || now - drawn_ >= kRedraw)) {
    drawn_ = now;
    log_.console().status(evaluation_bar_text(samples, to_evaluate_, left, log_.console().columns()));
  }
}

void Progress::end_evaluation() {
  log_.console().status("");
  drawn_ = -1;
}

}  // namespace lockstep::train
