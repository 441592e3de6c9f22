// The part of Session that watches ranks and clock, looks for requests (train/run/requests.h), and answers them after
// the step in which all ranks learn of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>

#include "lockstep/core/exit_status.h"
#include "lockstep/core/log.h"
#include "lockstep/train/monitor/stack_signal.h"
#include "lockstep/train/run/requests.h"
#include "lockstep/train/run/session.h"

namespace lockstep::train {
namespace {

// Bytes per second of a file system that is slow: for the first checkpoint, whose time nobody knows.
constexpr double kSlowDisk = 100e6;

std::string reasons(std::uint64_t asked, const std::string& deadline) {
  std::vector<std::string> all;
  if ((asked & kStopAsked) != 0) all.emplace_back("a signal to stop");
  if ((asked & kTimeIsUp) != 0) all.emplace_back(deadline);
  if ((asked & kCheckpointAsked) != 0) all.emplace_back("a signal for a checkpoint");
  if ((asked & kCheckpointDue) != 0) all.emplace_back("the clock");
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

void Session::watch_ranks() {
  if (options_.stall_timeout == 0) return;
  if (stack_signal() != 0) write_stacks_to(log_->file());
  watchdog_ = std::make_unique<Watchdog>(comm_, heartbeat_,
                                         WatchdogOptions{.stall = options_.stall_timeout,
                                                         .abort = options_.abort_timeout,
                                                         .stack_signal = stack_signal(),
                                                         .stacks = stack_signal() != 0 ? log_->file() : ""});
}

void Session::watch_clock() {
  if (!comm_.is_root()) return;
  deadline_ = Deadline({.limit = options_.time_limit,
                        .margin = options_.time_margin,
                        .began = started_,
                        .checkpoint_seconds = static_cast<double>(trainer_->state_bytes()) / kSlowDisk,
                        .variable = [](const std::string& name) {
                          const char* value = std::getenv(name.c_str());
                          return value == nullptr ? std::nullopt : std::optional<std::string>(value);
                        }});
  if (deadline_.exists()) {
    const double left = deadline_.remaining(Deadline::Clock::now());
    if (left > 0) {
      log()->info("time: {} to {}; the run stops with a checkpoint {:.0f} s or more before", duration_text(left),
                  deadline_.source(), deadline_.margin());
    } else {
      log()->info("time: {} is over; the run stops with a checkpoint after one step", deadline_.source());
    }
  }
}

std::uint64_t Session::my_requests() {
  const bool time_is_up = deadline_.reached(Deadline::Clock::now()) && !making_up_;
  const std::chrono::duration<double, std::ratio<60>> unsaved = std::chrono::steady_clock::now() - saved_at_;
  const bool due =
      comm_.is_root() && options_.checkpoint_every_minutes > 0 && unsaved.count() >= options_.checkpoint_every_minutes;
  return requested() | (time_is_up ? std::uint64_t{kTimeIsUp} : 0) | (due ? std::uint64_t{kCheckpointDue} : 0);
}

// After a step or an evaluation, when its requests are known to all. A signal that comes while the checkpoint is
// written is answered by it: the state is the same.
void Session::answer_requests() {
  const std::uint64_t asked = trainer_->requests() & (kCheckpointRequests | kStopRequests);
  if (asked == 0) return;
  stopped_ = stopped_ || (asked & kStopRequests) != 0;
  if (is_unsaved()) save_checkpoint();
  forget_requests(kCheckpointRequests);
  std::string limit = "the time limit";  // only rank 0 knows more
  if (deadline_.exists()) {
    const double left = deadline_.remaining(Deadline::Clock::now());
    limit = deadline_.source() + (left > 0 ? fmt::format(" is {:.0f} s away", std::ceil(left)) : " is over");
  }
  const std::string why = reasons(asked, limit);
  log()->info("{}: checkpoint of step {}{}", why, saved_step_, status() == 0 ? "" : ", stopping");
}

int Session::status() const { return stopped_ && (!done() || evaluation_due_) ? kExitStopped : 0; }

bool Session::evaluation_is_due() const {
  const bool whole = train_loader_->position().epoch > epoch_;
  return options_.eval_every > 0 && ((whole && (epoch_ + 1) % options_.eval_every == 0) || done());
}

// Of the epoch at hand. One that a request ended early stays due, and so does that of a run that stopped before it: the
// run that goes on from the checkpoint makes it up.
void Session::evaluate_epoch() {
  const double before = seconds();
  const Totals totals = evaluate();
  if (totals.whole) {
    evaluation_due_ = false;
    evaluation_ = {{"step", trainer_->updates()}, {"loss", totals.loss}, {"accuracy", totals.fraction("correct")}};
    const double took = std::max(1e-9, seconds() - before);
    write_metrics("eval", totals, static_cast<double>(totals.samples) / took);
    const std::string training = epoch_sums_.epoch == epoch_ ? epoch_sums_.str() : "";
    log()->info("epoch {}: {}evaluation loss {:.4f}, accuracy {:.2f}% of {} samples", epoch_ + 1, training, totals.loss,
                100 * totals.fraction("correct"), totals.samples);
  }
  answer_requests();
}

// A start that the clock ends here would never come forward, so this once it does not.
void Session::make_up_evaluation() {
  const data::SamplerPosition at = train_loader_->position();
  epoch_ = at.offset == 0 ? at.epoch - 1 : at.epoch;
  resave_ = true;  // the checkpoint says that the evaluation is due
  making_up_ = true;
  evaluate_epoch();
  making_up_ = false;
}

}  // namespace lockstep::train
