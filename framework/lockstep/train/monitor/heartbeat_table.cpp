#include "lockstep/train/monitor/heartbeat_table.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace lockstep::train {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kAsleep{2};  // if a watchdog has not run for this time, the next one reports

}  // namespace

HeartbeatTable::HeartbeatTable(const comm::Communicator& comm, Heartbeat& heartbeat, const Stacks& stacks)
    : node_(comm.group("node").duplicate()), heartbeat_(heartbeat), table_(node_, sizeof(Heartbeat::Row)) {
  for (int r = 0; r < node_.size(); ++r) rows_.push_back(reinterpret_cast<Heartbeat::Row*>(table_.segment(r).data()));
  Heartbeat::Row& mine = *rows_[static_cast<std::size_t>(node_.rank())];
  mine.process.store(getpid());
  mine.process_start.store(host::process_state(getpid()).start);
  mine.stack_signal.store(stacks.signal);
  ranks_ = node_.allgather(comm.rank());
  stack_files_ = node_.allgather_strings(stacks.file.string());
  heartbeat_.attach(mine);
  node_.barrier();
  const Clock::time_point now = Clock::now();
  seen_.assign(rows_.size(), {.beat_at = now, .watch_at = now});
}

void HeartbeatTable::show_awake() {
  rows_[static_cast<std::size_t>(node_.rank())]->watches.fetch_add(1, std::memory_order_relaxed);
}

void HeartbeatTable::forgive(Clock::time_point now) {
  for (Seen& s : seen_) s.beat_at = s.watch_at = now;
}

void HeartbeatTable::read(Clock::time_point now) {
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

bool HeartbeatTable::speaks(Clock::time_point now) const {
  for (int l = 0; l < node_.rank(); ++l) {
    if (now - seen_[static_cast<std::size_t>(l)].watch_at < kAsleep) return false;
  }
  return true;
}

bool HeartbeatTable::report(std::size_t local) {
  Seen& seen = seen_[local];
  const std::uint64_t beats = views_[local].beats;
  if (std::exchange(seen.told_beats, beats) == beats) return false;
  seen.told_since = seen.beat_at;
  return true;
}

std::string HeartbeatTable::describe(std::size_t l, const host::ProcessState& process) {
  const RankView& v = views_[l];
  std::string text = fmt::format("its process {} {}", v.process, process.str());
  const bool same = process.start == rows_[l]->process_start.load();
  const int signal = rows_[l]->stack_signal.load();
  if (process.is_traced()) {
    text += "; it continues when the debugger resumes it or detaches";
  } else if (process.is_stopped()) {
    text += fmt::format("; `kill -CONT {}` on that host continues it", v.process);
  } else if (signal != 0 && same && !process.is_gone() &&
             syscall(SYS_tgkill, v.process, v.process, signal) == 0) {  // to its main thread
    text +=
        fmt::format("; it was asked to write its stack to {}", stack_files_[l].empty() ? "stderr" : stack_files_[l]);
  }
  return text;
}

std::vector<HeartbeatTable::GoesOn> HeartbeatTable::going_on(Clock::time_point now) {
  std::vector<GoesOn> ranks;
  for (std::size_t l = 0; l < seen_.size(); ++l) {
    Seen& s = seen_[l];
    if (s.told_beats == 0 || s.told_beats == s.beats) continue;
    ranks.push_back({ranks_[l], Seconds(now - s.told_since).count()});
    s.told_beats = 0;
  }
  return ranks;
}

}  // namespace lockstep::train
