// Brings the control blocks of a step to all ranks. In a domain the blocks lie in shared memory; the first rank of the
// domain exchanges them with the first ranks of the other domains. progress() drives this state machine, from one
// thread; the computing thread posts a block and asks whether all blocks have arrived.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/parallel/control/control_memory.h"
#include "lockstep/parallel/exchange/shared_flags.h"
#include "lockstep/parallel/exchange/transport.h"

namespace lockstep::parallel {

class ControlExchange {
 public:
  static constexpr int kFlags = 2;
  // `transport` and `flags` (of kFlags) outlive the exchange and serve nothing else.
  ControlExchange(Transport& transport, SharedFlags& flags, const Domains& domains, const ControlMemory& memory)
      : transport_(transport), flags_(flags), domains_(domains), memory_(memory) {}

  // --- for the thread that computes; steps count from 1
  void post(std::uint32_t step) { flags_.raise(kPosted, step); }  // this rank's block of that step is written
  bool complete(std::uint32_t step) const { return flags_.reached(0, kComplete, step); }
  std::span<std::uint64_t> block(int rank, std::uint32_t step) const { return memory_.block(rank, step); }
  int ranks() const { return memory_.ranks(); }

  // --- for the thread that drives
  bool progress();  // whether something moved

 private:
  enum Flag : int { kPosted, kComplete };
  void start();

  Transport& transport_;
  SharedFlags& flags_;
  Domains domains_;
  ControlMemory memory_;
  std::uint32_t step_ = 1;  // the step that is exchanged now or next
  bool exchanging_ = false;
  std::vector<Transport::MessageHandle> handles_;
};

}  // namespace lockstep::parallel
