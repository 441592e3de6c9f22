#include "lockstep/train/monitor/watch_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::train {
namespace {

using Phase = Heartbeat::Phase;

const char* words_for(Phase phase) {
  switch (phase) {
    case Phase::Starting:
      return "starting";
    case Phase::Loading:
      return "waiting for its next batch of data";
    case Phase::Producing:
      return "waiting for samples of its stream";
    case Phase::Step:
      return "in the training step";
    case Phase::Evaluating:
      return "in an evaluation";
    case Phase::Saving:
      return "saving a checkpoint";
    case Phase::Ending:
      return "ending";
    case Phase::Returned:
      return "after the program's last call";
    case Phase::Outside:
      break;
  }
  return "between two steps";
}

}  // namespace

double patience(Phase phase) {
  return phase == Phase::Starting || phase == Phase::Saving || phase == Phase::Ending ? 10 : 1;
}

Verdict judge(std::span<const RankView> ranks, double limit, std::uint64_t least_elsewhere,
              std::span<const host::ProcessState> processes) {
  std::uint64_t least = least_elsewhere;
  for (const RankView& r : ranks) least = std::min(least, r.sequence);
  Verdict verdict;
  std::size_t waiting =
      0;  // in any phase: ranks that make different calls may have entered different numbers of phases
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankView& r = ranks[i];
    if (r.still < limit * patience(r.phase)) continue;
    const bool dead = processes[i].is_gone() || processes[i].is_stopped();
    if (!dead && r.phase == Phase::Producing) {
      verdict.producing.push_back(i);
    } else if (!dead && r.waits) {
      ++waiting;
    } else if (r.sequence <= least) {
      verdict.missing.push_back(i);
    }
  }
  verdict.all_wait = waiting == ranks.size();
  return verdict;
}

std::uint64_t furthest(std::span<const RankView> ranks) {
  std::uint64_t most = 0;
  for (const RankView& r : ranks) {
    if (r.phase != Phase::Returned && r.still >= kLeftAlone) most = std::max(most, r.sequence);
  }
  return most;
}

std::optional<std::size_t> left_alone(std::span<const RankView> ranks, std::uint64_t furthest_elsewhere) {
  const std::uint64_t most = std::max(furthest(ranks), furthest_elsewhere);
  const auto found = std::ranges::find_if(ranks, [&](const RankView& r) {
    return r.phase == Phase::Returned && r.still >= kLeftAlone && r.sequence <= most;
  });
  if (found == ranks.end()) return std::nullopt;
  return found - ranks.begin();
}

std::string place_of(const RankView& r) {
  const bool in_step = r.phase == Phase::Step;
  std::string text = r.step == 0 ? "before its first step" : fmt::format("at step {}", r.step);
  text += fmt::format(", {}", words_for(r.phase));
  if (in_step && r.bucket >= 0) text += fmt::format(", at bucket {}", r.bucket);
  if (in_step && r.bucket < 0) text += ", before its first gradient";
  return text;
}

std::string why_all_wait(std::span<const RankView> ranks) {
  const RankView& first = ranks[0];
  const auto other =
      std::ranges::find_if(ranks, [&](const RankView& r) { return r.step != first.step || r.phase != first.phase; });
  if (other == ranks.end())
    return fmt::format("{}: a message between them was lost, or they are in different calls", place_of(first));
  return fmt::format(
      "in different calls: rank {} {}, rank {} {}; expected the same calls, in the same order, on all ranks",
      first.rank, place_of(first), other->rank, place_of(*other));
}

}  // namespace lockstep::train
