// Decides which rank is the cause when ranks stand still, from a watchdog's view of a node's ranks. Without MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/heartbeat.h"
#include "lockstep/host/process_state.h"

namespace lockstep::train {

// The state of a rank of this node, from its row in the table of heartbeats.
struct RankView {
  int rank = 0;
  Heartbeat::Phase phase = Heartbeat::Phase::Starting;
  bool waits = false;  // true: it waits for other ranks
  std::uint64_t beats = 0, sequence = 0;
  std::int64_t step = 0;
  int bucket = -1, process = 0;
  double still = 0;  // seconds since its last beat
};

// Returns the factor by which limits are longer in phases that take long without a beat: compiling and tuning, writing
// a checkpoint, ending.
double patience(Heartbeat::Phase phase);

struct Verdict {
  std::vector<std::size_t> missing;    // indices of the ranks for which other ranks wait
  std::vector<std::size_t> producing;  // indices of the ranks that wait for samples of their streams
  bool all_wait = false;               // true: all ranks of the node stand still and wait for other ranks
};

// Finds the missing ranks. A rank is missing if it has not moved for `limit` seconds, if no rank of this node or (by
// `least_elsewhere`) of another node has entered fewer phases, and if it does not wait or its process has ended or was
// stopped. A live rank that waits for samples of its stream is not missing, however long that takes: the producer
// decides when they come.
Verdict judge(std::span<const RankView> ranks, double limit, std::uint64_t least_elsewhere,
              std::span<const host::ProcessState> processes);

// Seconds for which a rank stands still before it counts for left_alone() and furthest(): a row is not read as a whole.
inline constexpr double kLeftAlone = 2;

// Returns the number of phases that a rank has entered which stands still and is to make more collective calls; the
// largest of them, or 0.
std::uint64_t furthest(std::span<const RankView> ranks);

// Returns the index of a rank on which the program has returned although other ranks, of this node or (by
// `furthest_elsewhere`) of another, have entered a phase that it never enters: they wait for it without end.
std::optional<std::size_t> left_alone(std::span<const RankView> ranks, std::uint64_t furthest_elsewhere);

// Describes the position of a rank: "at step 7, in the training step, at bucket 2".
std::string place_of(const RankView& rank);

// Explains why all ranks of a node wait, from their positions.
std::string why_all_wait(std::span<const RankView> ranks);

}  // namespace lockstep::train
