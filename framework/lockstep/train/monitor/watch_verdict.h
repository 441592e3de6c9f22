// Who is to blame when ranks stand still: decided from what a watchdog has seen of a node's ranks, without MPI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/heartbeat.h"
#include "lockstep/host/process_state.h"

namespace lockstep::train {

// A rank of this node as its row in the table of heartbeats tells it.
struct RankView {
  int rank = 0;
  Heartbeat::Phase phase = Heartbeat::Phase::Starting;
  bool waits = false;  // for other ranks
  std::uint64_t beats = 0, sequence = 0;
  std::int64_t step = 0;
  int bucket = -1, process = 0;
  double still = 0;  // seconds since its last beat
};

// Of phases that take long without a beat (compiling and tuning, writing a checkpoint, ending): this many times the
// limits hold.
double patience(Heartbeat::Phase phase);

struct Verdict {
  std::vector<std::size_t> missing;  // the ranks that the others wait for, as indices
  bool all_wait = false;             // every rank of the node has stood still, waiting for others
};

// Ranks that have not moved for `limit` seconds and are last: none has entered fewer phases, of this node and, by
// `least_elsewhere`, of the others; and who does not wait, or whose process has ended or was stopped.
Verdict judge(std::span<const RankView> ranks, double limit, std::uint64_t least_elsewhere,
              std::span<const host::ProcessState> processes);

// "at step 7, in the training step, at bucket 2".
std::string place_of(const RankView& rank);

// Of ranks of a node that all wait: where they are, and what that tells.
std::string why_all_wait(std::span<const RankView> ranks);

}  // namespace lockstep::train
