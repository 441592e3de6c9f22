// Requests to a running training, by a signal or by a clock. A request is a bit; the next step's control block brings
// it to all ranks (Trainer::listen()), so that all ranks answer it after the same step.
#pragma once

#include <cstdint>

namespace lockstep::train {

enum Request : std::uint64_t {
  kCheckpointAsked = 1,  // write a checkpoint and go on
  kCheckpointDue = 2,    // the same, by rank 0's clock
  kStopAsked = 4,        // write a checkpoint and end
  kTimeIsUp = 8,         // the same, by rank 0's clock
  kProducerFailed = 16,  // the producer of this rank's stream threw an exception: end
};
inline constexpr std::uint64_t kRequestBits = 0xff;    // bits of requests; higher bits are votes of callbacks
inline constexpr int kFirstVote = 8, kMostVotes = 55;  // bits of votes; evaluations use the last bit
inline constexpr std::uint64_t kCheckpointRequests = kCheckpointAsked | kCheckpointDue;
inline constexpr std::uint64_t kStopRequests = kStopAsked | kTimeIsUp;

// Sets and returns the requests of this process; a session reads them at the start of each step. Async-signal-safe; any
// thread.
void request(Request wanted) noexcept;
std::uint64_t requested() noexcept;
// Clears requests that were answered.
void forget_requests(std::uint64_t bits) noexcept;

}  // namespace lockstep::train
