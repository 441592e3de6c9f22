// Counts, for each rank, what hints that it computes wrongly. A rank with too many hints makes all ranks compute the
// known product (known_product.h). Alike on all ranks; one thread.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// "rank 3 on node1", for messages.
std::string name_of(const comm::Communicator& comm, int rank);

class Suspects {
 public:
  static constexpr int kEnough = 2;  // hints; then the rank has to compute the known product

  explicit Suspects(const comm::Communicator& comm) : comm_(comm) {}  // which outlives this

  // `times` hints at `rank`. Collective where they are enough; throws UntrustedError on all ranks where an answer is
  // wrong.
  void suspect(int rank, int times);

 private:
  const comm::Communicator& comm_;
  std::vector<int> suspicions_;  // by rank
};

}  // namespace lockstep::train
