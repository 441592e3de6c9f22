#include "lockstep/parallel/step/step_channels.h"

#include "lockstep/comm/environment.h"

namespace lockstep::parallel {
namespace {

// After this time, messages that a rank sent before it left have arrived.
constexpr std::chrono::seconds kOnTheWay{10};
constexpr std::int64_t kLooks = 1000;

}  // namespace

StepChannels::StepChannels(const comm::Communicator& comm, NodeMemory& memory, const Flags& flags)
    : memory_(memory),
      gradients_(comm, flags.reduction, memory.domains().local_rank()),
      control_(comm, flags.control, memory.domains().local_rank()) {}

StepChannels::~StepChannels() {
  if (hook_ != nullptr) hook_->end();
}

void StepChannels::begin_hook(const comm::Communicator& comm, BucketHook& hook,
                              std::span<const std::int64_t> bucket_elements) {
  hook.begin(comm, bucket_elements);
  hook_ = &hook;
}

// Messages may still be in flight when their sender has left.
void StepChannels::check_peers() {
  gradients_.flags.check_alive();
  if (!memory_.somebody_left()) return;
  const auto now = std::chrono::steady_clock::now();
  if (!peer_left_since_) peer_left_since_ = now;
  if (++looks_since_ > kLooks && now - *peer_left_since_ > kOnTheWay) memory_.check_nobody_left();
}

void StepChannels::fail() {
  gradients_.flags.fail();
  control_.flags.fail();
  memory_.fail();
}

// After MPI_Finalize the memory of the other ranks does not exist any more.
void StepChannels::leave(std::int64_t updates, bool failing) {
  if (left_) return;
  left_ = true;
  if (!comm::Environment::active()) return;
  const int rank = memory_.domains().rank;
  gradients_.flags.leave(rank, updates, failing);
  control_.flags.leave(rank, updates, failing);
  memory_.leave(updates, failing);
}

}  // namespace lockstep::parallel
