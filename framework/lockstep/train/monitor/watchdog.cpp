#include "lockstep/train/monitor/watchdog.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr double kLooks = 8;                   // within a limit
constexpr Seconds kOften{1}, kRarely{0.02};    // bounds of the time between two
constexpr Seconds kAsleep{2};                  // a watchdog that has not looked for so long leaves speaking to the next
constexpr std::chrono::seconds kFarewell{10};  // for the other nodes' last words

std::unique_ptr<NodeNews> talk(const comm::Communicator& comm, const comm::Communicator& node) {
  const bool able = comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple;
  const bool all_able = comm.allreduce(std::int64_t{able}, comm::ReduceOp::Min) == 1;
  if (comm.node_count() == 1) return nullptr;
  if (!all_able) {
    if (comm.is_root())
      log()->info(
          "watchdog: MPI was initialised without MPI_THREAD_MULTIPLE, so each host watches its own ranks alone");
    return nullptr;
  }
  comm::Communicator leaders = comm.split(node.is_root() ? 0 : 1, comm.node_rank());
  if (!node.is_root()) return nullptr;
  return std::make_unique<NodeNews>(std::move(leaders));
}

}  // namespace

Watchdog::Watchdog(const comm::Communicator& comm, Heartbeat& heartbeat, WatchdogOptions options)
    : comm_(comm.duplicate()),
      node_(comm.group("node").duplicate()),
      heartbeat_(heartbeat),
      options_(std::move(options)),
      table_(node_, sizeof(Heartbeat::Row)),
      interval_(
          std::chrono::duration_cast<Clock::duration>(std::clamp(Seconds(options_.stall / kLooks), kRarely, kOften))),
      news_(talk(comm_, node_)),
      silence_told_(static_cast<std::size_t>(comm_.node_count())) {
  for (int r = 0; r < node_.size(); ++r) rows_.push_back(reinterpret_cast<Heartbeat::Row*>(table_.segment(r).data()));
  Heartbeat::Row& mine = *rows_[static_cast<std::size_t>(node_.rank())];
  mine.process.store(getpid());
  mine.process_start.store(process_state(getpid()).start);
  mine.stack_signal.store(options_.stack_signal);
  ranks_ = node_.allgather(comm_.rank());
  stack_files_ = node_.allgather_strings(options_.stacks.string());
  heartbeat_.attach(mine);
  node_.barrier();
  last_look_ = Clock::now();
  seen_.assign(rows_.size(), {.beat_at = last_look_, .watch_at = last_look_});
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
  heartbeat_.detach();
  if (!news_ || std::uncaught_exceptions() > 0 || comm_.poisoned()) return;
  try {
    news_->leave(kFarewell);
  } catch (const Error& error) {
    log()->warn("watchdog: {}", error.what());
  }
}

void Watchdog::run() {
  try {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, interval_, [this] { return ended_; })) look(Clock::now());
    read_table(Clock::now());
    if (speaks(Clock::now())) tell_who_goes_on(Clock::now());
  } catch (const std::exception& error) {
    log()->warn("the watchdog of rank {} has ended: {}", comm_.rank(), error.what());
  }
}

void Watchdog::look(Clock::time_point now) {
  const auto local = static_cast<std::size_t>(node_.rank());
  rows_[local]->watches.fetch_add(1, std::memory_order_relaxed);
  if (now - last_look_ > 3 * interval_ + 1s) {  // this process was stopped, or the machine slept: it saw nothing
    for (Seen& s : seen_) s.beat_at = s.watch_at = now;
    if (news_) news_->forgive(now);
  }
  last_look_ = now;
  read_table(now);
  judge_node(now);
  if (news_) judge_nodes(now);
}

void Watchdog::read_table(Clock::time_point now) {
  views_.clear();
  for (std::size_t l = 0; l < rows_.size(); ++l) {
    const Heartbeat::Row& row = *rows_[l];
    Seen& seen = seen_[l];
    const std::uint64_t watches = row.watches.load(std::memory_order_relaxed);
    if (std::exchange(seen.watches, watches) != watches) seen.watch_at = now;
    RankView view{.rank = ranks_[l],
                  .phase = row.phase.load(std::memory_order_relaxed),
                  .waits = false,
                  .beats = row.beats.load(std::memory_order_relaxed),
                  .sequence = row.sequence.load(std::memory_order_relaxed),
                  .step = row.step.load(std::memory_order_relaxed),
                  .bucket = row.bucket.load(std::memory_order_relaxed),
                  .process = row.process.load(std::memory_order_relaxed)};
    view.waits = row.waits.load(std::memory_order_relaxed) == view.beats;
    if (std::exchange(seen.beats, view.beats) != view.beats) seen.beat_at = now;
    view.still = Seconds(now - seen.beat_at).count();
    views_.push_back(view);
  }
}

// Of the ranks whose watchdogs are awake, the first.
bool Watchdog::speaks(Clock::time_point now) const {
  for (int l = 0; l < node_.rank(); ++l) {
    if (now - seen_[static_cast<std::size_t>(l)].watch_at < kAsleep) return false;
  }
  return true;
}

void Watchdog::judge_node(Clock::time_point now) {
  const bool still =
      std::ranges::any_of(views_, [&](const RankView& v) { return v.still >= options_.stall * patience(v.phase); });
  Verdict verdict;
  std::vector<ProcessState> processes(views_.size());
  if (still) {
    for (std::size_t l = 0; l < views_.size(); ++l) processes[l] = process_state(views_[l].process);
    const std::uint64_t elsewhere = news_ ? news_->others().least : std::numeric_limits<std::uint64_t>::max();
    verdict = judge(views_, options_.stall, elsewhere, processes);
  }
  if (news_) {
    const auto least = std::ranges::min_element(views_, {}, &RankView::sequence);
    news_->exchange({.least = least->sequence, .all_wait = verdict.all_wait}, now);
  }
  if (!speaks(now)) return;
  tell_who_goes_on(now);
  for (const std::size_t l : verdict.missing) {
    const RankView& v = views_[l];
    if (std::exchange(seen_[l].told_beats, v.beats) != v.beats) {
      seen_[l].told_since = seen_[l].beat_at;
      tell(l, processes[l]);
    }
    if (options_.abort > 0 && v.still >= options_.abort * patience(v.phase))
      give_up(fmt::format("{} has not moved for {:.0f} s", name_of(v.rank), v.still));
  }
  const bool everywhere = verdict.all_wait && (!news_ || news_->others().all_wait) && comm_.size() > 1;
  const bool knows = news_ ? comm_.is_root() : comm_.node_count() == 1;
  if (!everywhere || !knows) {
    told_all_wait_ = false;
    return;
  }
  const double since = std::ranges::min(views_, {}, &RankView::still).still;
  if (!std::exchange(told_all_wait_, true))
    log()->warn("all ranks have waited for each other for {:.0f} s, {}", since, why_all_wait(views_));
  if (options_.abort > 0 && since >= options_.abort)
    give_up(fmt::format("all ranks have waited for each other for {:.0f} s", since));
}

void Watchdog::judge_nodes(Clock::time_point now) {
  for (const int node : news_->heard()) {
    const double silent = news_->silent(node, now);
    const bool told = silence_told_[static_cast<std::size_t>(node)];
    if (silent < options_.stall) {
      if (told) log()->warn("{} is heard again", names_of_node(node));
      silence_told_[static_cast<std::size_t>(node)] = false;
      continue;
    }
    const std::string what = fmt::format(
        "{} has not been heard for {:.0f} s: its first process is stopped, the host is "
        "down, or the network between is",
        names_of_node(node), silent);
    silence_told_[static_cast<std::size_t>(node)] = true;
    if (!told) log()->warn("{}", what);
    if (options_.abort > 0 && silent >= options_.abort) give_up(what);
  }
}

void Watchdog::tell(std::size_t l, const ProcessState& process) {
  const RankView& v = views_[l];
  std::string text = fmt::format("{} has not moved for {:.0f} s: {}; its process {} {}", name_of(v.rank), v.still,
                                 place_of(v), v.process, process.str());
  const bool same = process.start == rows_[l]->process_start.load();
  const int signal = rows_[l]->stack_signal.load();
  if (process.is_traced()) {
    text += "; it goes on when the debugger lets it, or detaches";
  } else if (process.is_stopped()) {
    text += fmt::format("; `kill -CONT {}` there lets it go on", v.process);
  } else if (signal != 0 && same && !process.is_gone() &&
             syscall(SYS_tgkill, v.process, v.process, signal) == 0) {  // its main thread
    text += fmt::format("; it was asked for its stack: {}", stack_files_[l].empty() ? "stderr" : stack_files_[l]);
  }
  log()->warn("{}", text);
}

void Watchdog::tell_who_goes_on(Clock::time_point now) {
  for (std::size_t l = 0; l < seen_.size(); ++l) {
    Seen& s = seen_[l];
    if (s.told_beats == 0 || s.told_beats == s.beats) continue;
    log()->warn("{} goes on after {:.0f} s", name_of(ranks_[l]), Seconds(now - s.told_since).count());
    s.told_beats = 0;
  }
}

void Watchdog::give_up(const std::string& why) {
  log()->error("{}: the watchdog ends the job with status {}", why, kExitStalled);
  if (options_.give_up) return options_.give_up();
  if (comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple) comm::abort_job(kExitStalled);
  std::_Exit(kExitStalled);  // the launcher ends the others
}

std::string Watchdog::name_of(int rank) const {
  return fmt::format("rank {} on host {}", rank, comm_.topology().host(rank));
}

std::string Watchdog::names_of_node(int node) const {
  std::vector<int> ranks;
  for (int r = 0; r < comm_.size(); ++r) {
    if (comm_.topology().node_of(r) == node) ranks.push_back(r);
  }
  return fmt::format("host {} (ranks {} to {})", comm_.topology().host(ranks.front()), ranks.front(), ranks.back());
}

}  // namespace lockstep::train
