#include "lockstep/train/monitor/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr double kLooks = 8;                   // looks within a limit
constexpr Seconds kOften{1}, kRarely{0.02};    // longest and shortest time between two looks
constexpr std::chrono::seconds kFarewell{10};  // time to wait for the other nodes' last messages

}  // namespace

Watchdog::Watchdog(const comm::Communicator& comm, Heartbeat& heartbeat, WatchdogOptions options)
    : comm_(comm.duplicate()),
      options_(std::move(options)),
      table_(comm_, heartbeat, {.signal = options_.stack_signal, .file = options_.stacks}),
      nodes_(NodeWatch::make(comm_, table_.node())),
      interval_(
          std::chrono::duration_cast<Clock::duration>(std::clamp(Seconds(options_.stall / kLooks), kRarely, kOften))),
      last_look_(Clock::now()),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
  table_.leave();
  if (!nodes_ || std::uncaught_exceptions() > 0 || comm_.poisoned()) return;
  try {
    nodes_->heartbeat().leave(kFarewell);
  } catch (const Error& error) {
    log()->warn("watchdog: {}", error.what());
  }
}

void Watchdog::run() {
  try {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, interval_, [this] { return ended_; })) look(Clock::now());
    table_.read(Clock::now());
    if (table_.speaks(Clock::now())) tell_who_goes_on(Clock::now());
  } catch (const std::exception& error) {
    log()->warn("the watchdog of rank {} has ended: {}", comm_.rank(), error.what());
  }
}

void Watchdog::look(Clock::time_point now) {
  table_.show_awake();
  if (now - last_look_ > 3 * interval_ + 1s) {  // this process was stopped, or the machine slept
    table_.forgive(now);
    if (nodes_) nodes_->heartbeat().forgive(now);
  }
  last_look_ = now;
  table_.read(now);
  judge_node(now);
  if (!nodes_) return;
  if (const std::string silent = nodes_->judge(now, options_.stall, options_.abort); !silent.empty()) give_up(silent);
}

void Watchdog::judge_node(Clock::time_point now) {
  const std::vector<RankView>& views = table_.views();
  const bool still =
      std::ranges::any_of(views, [&](const RankView& v) { return v.still >= options_.stall * patience(v.phase); });
  Verdict verdict;
  std::vector<host::ProcessState> processes(views.size());
  if (still) {
    for (std::size_t l = 0; l < views.size(); ++l) processes[l] = host::process_state(views[l].process);
    const std::uint64_t elsewhere =
        nodes_ ? nodes_->heartbeat().others().least : std::numeric_limits<std::uint64_t>::max();
    verdict = judge(views, options_.stall, elsewhere, processes);
  }
  if (nodes_) {
    const auto least = std::ranges::min_element(views, {}, &RankView::sequence);
    nodes_->heartbeat().exchange({.least = least->sequence, .all_wait = verdict.all_wait, .furthest = furthest(views)},
                                 now);
  }
  if (!table_.speaks(now)) return;
  tell_who_goes_on(now);
  report(verdict, processes);
  judge_all_wait(verdict.all_wait);
  judge_returned();
}

// The other ranks wait for a rank that has made its last call: no time can mend that.
void Watchdog::judge_returned() {
  const std::vector<RankView>& views = table_.views();
  const auto left = left_alone(views, nodes_ ? nodes_->heartbeat().others().furthest : 0);
  if (!left) return;
  const RankView& gone = views[*left];
  const auto other = std::ranges::find_if(
      views, [&](const RankView& v) { return v.phase != Heartbeat::Phase::Returned && v.sequence >= gone.sequence; });
  give_up(fmt::format("the program has returned on {} after step {}, while {}; expected: all ranks leave the loop of "
                      "batches or epochs after the same step",
                      name_of(gone.rank), gone.step,
                      other == views.end() ? "ranks of another host go on"
                                           : fmt::format("{} is {}", name_of(other->rank), place_of(*other))),
          1);
}

void Watchdog::report(const Verdict& verdict, std::span<const host::ProcessState> processes) {
  for (const std::size_t l : verdict.producing) {
    const RankView& v = table_.views()[l];
    if (table_.report(l))
      log()->warn("{} has waited {:.0f} s for samples of its stream: {}; the run goes on when its producer sends them",
                  name_of(v.rank), v.still, place_of(v));
  }
  for (const std::size_t l : verdict.missing) {
    const RankView& v = table_.views()[l];
    if (table_.report(l))
      log()->warn("{} has not moved for {:.0f} s: {}; {}", name_of(v.rank), v.still, place_of(v),
                  table_.describe(l, processes[l]));
    if (options_.abort > 0 && v.still >= options_.abort * patience(v.phase))
      give_up(fmt::format("{} has not moved for {:.0f} s", name_of(v.rank), v.still));
  }
}

void Watchdog::judge_all_wait(bool node_waits) {
  const bool everywhere = node_waits && (!nodes_ || nodes_->heartbeat().others().all_wait) && comm_.size() > 1;
  const bool knows = nodes_ ? comm_.is_root() : comm_.node_count() == 1;
  if (!everywhere || !knows) {
    told_all_wait_ = false;
    return;
  }
  const std::vector<RankView>& views = table_.views();
  const double since = std::ranges::min(views, {}, &RankView::still).still;
  if (!std::exchange(told_all_wait_, true))
    log()->warn("all ranks have waited for each other for {:.0f} s, {}", since, why_all_wait(views));
  if (options_.abort > 0 && since >= options_.abort)
    give_up(fmt::format("all ranks have waited for each other for {:.0f} s", since));
}

void Watchdog::tell_who_goes_on(Clock::time_point now) {
  for (const HeartbeatTable::GoesOn& r : table_.going_on(now))
    log()->warn("{} moves again after {:.0f} s", name_of(r.rank), r.seconds);
}

void Watchdog::give_up(const std::string& why, int status) {
  log()->error("{}: the watchdog ends the job with status {}", why, status);
  if (options_.give_up) return options_.give_up();
  if (comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple) comm::abort_job(status);
  std::_Exit(status);  // the launcher ends the other ranks
}

std::string Watchdog::name_of(int rank) const {
  return fmt::format("rank {} on host {}", rank, comm_.topology().host(rank));
}

}  // namespace lockstep::train
