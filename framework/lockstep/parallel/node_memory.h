// Memory of the parameters of one model where ranks of a domain see each other's gradients and, if they share, hold
// values and optimizer state once. Collective over the communicator; every allocation begins with an agreement, so a
// rank that failed on the way does not leave the others waiting.
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
  // Messages that were given up may still come: then memory that they may come to stays.
  ~NodeMemory() override;

  std::span<std::byte> own(std::size_t bytes) override;
  std::span<std::byte> common(std::size_t bytes) override;
  bool fills_common() const override { return !share_ || domains_.local_rank() == 0; }
  bool shares() const override { return share_; }

  const Domains& domains() const { return domains_; }
  // By local rank: the allocation that own() gave this rank as `mine`, as the others have it.
  std::vector<std::span<std::byte>> segments(std::span<std::byte> mine) const;
  // Rank 0's content of a part of common memory to all domains. Collective; ends without a fence.
  void broadcast_common(std::span<std::byte> part) const;
  // Until all ranks of the domain are here: what one of them wrote into common memory is then seen by all. Throws
  // PeerError if a rank that has not come has failed, Error if it has left.
  void fence();
  // For the other ranks of the domain: see SharedFlags.
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
  comm::Communicator local_;    // this domain's ranks
  comm::Communicator leaders_;  // those who fill common memory; of the others, the others
  bool share_;
  std::deque<comm::SharedWindow> windows_;
  std::unique_ptr<SharedFlags> flags_;  // null for a rank alone
  std::uint32_t fences_ = 0;
  std::vector<AlignedBuffer> private_;  // of common(), where nothing is shared
};

}  // namespace lockstep::parallel
