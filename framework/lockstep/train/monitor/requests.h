// What a run may be asked while it trains: from outside by a signal, or by a clock. A request is a bit; it travels to
// all ranks in the next step's control block (Trainer::listen()), so that all answer it after the same step.
#pragma once

#include <cstdint>

namespace lockstep::train {

enum Request : std::uint64_t {
  kCheckpointAsked = 1,  // write a checkpoint and go on
  kCheckpointDue = 2,    // the same, by rank 0's clock
  kStopAsked = 4,        // write a checkpoint and end
  kTimeIsUp = 8,         // the same, by rank 0's clock
};
inline constexpr std::uint64_t kRequestBits = 0xff;    // kept for requests; the bits above are callbacks' votes
inline constexpr int kFirstVote = 8, kMostVotes = 55;  // bits; the last one is the evaluation's own
inline constexpr std::uint64_t kCheckpointRequests = kCheckpointAsked | kCheckpointDue;
inline constexpr std::uint64_t kStopRequests = kStopAsked | kTimeIsUp;

// Of this process, set from outside the loop: a session looks at the begin of each step. Async-signal-safe, any thread.
void request(Request wanted) noexcept;
std::uint64_t requested() noexcept;
// They were answered.
void forget_requests(std::uint64_t bits) noexcept;

}  // namespace lockstep::train
