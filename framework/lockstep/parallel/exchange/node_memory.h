// Memory for the parameters of one model. The ranks of a domain see each other's gradients; if they share, they have
// one copy of values and optimizer state. Calls are collective over the communicator, from one thread. Every allocation
// begins with an agreement, so that a rank that has failed before does not leave other ranks waiting.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "lockstep/comm/shared_window.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/tree/domains.h"
#include "lockstep/plan/parameter_memory.h"

namespace lockstep::parallel {

class NodeMemory : public plan::ParameterMemory {
 public:
  // `comm` outlives this.
  NodeMemory(const comm::Communicator& comm, Domains domains, bool share);
  // Keeps memory for which abandoned messages may still arrive.
  ~NodeMemory() override;

  std::span<std::byte> own(std::size_t bytes) override;
  std::span<std::byte> common(std::size_t bytes) override;
  bool fills_common() const override { return !share_ || domains_.local_rank() == 0; }
  bool shares() const override { return share_; }

  const Domains& domains() const { return domains_; }
  // By local rank: the allocation of that rank in the call of own() that returned `mine` on this rank.
  std::vector<std::span<std::byte>> segments(std::span<std::byte> mine) const;
  // Copies rank 0's content of a part of common memory to all domains. Collective; ends without a fence.
  void broadcast_common(std::span<std::byte> part) const;
  // Waits until all ranks of the domain are here; all of them then see what each wrote into common memory. Throws
  // PeerError if a missing rank has failed, Error if it has left.
  void fence();
  // These tell the other ranks of the domain that this rank has failed or leaves: see SharedFlags.
  void fail();
  void leave(std::int64_t updates, bool failing);
  bool somebody_left() const { return flags_ && flags_->somebody_left(); }
  void check_nobody_left() const {
    if (flags_) flags_->check_nobody_left();
  }

 private:
  const comm::SharedWindow& make_window(std::size_t bytes);

  const comm::Communicator& comm_;
  Domains domains_;
  comm::Communicator local_;  // this domain's ranks
  comm::Communicator
      leaders_;  // local rank 0 of each domain, which fills common memory; elsewhere the non-leaders, unused
  bool share_;
  std::deque<comm::SharedWindow> windows_;
  std::unique_ptr<SharedFlags> flags_;  // null for a rank alone
  std::uint32_t fences_ = 0;
  std::vector<AlignedBuffer> private_;  // of common(), where nothing is shared
};

}  // namespace lockstep::parallel
