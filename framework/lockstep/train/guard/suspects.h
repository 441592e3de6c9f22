// Counts, for each rank, the hints that it computes wrongly. If a rank has too many hints, all ranks compute the known
// product (known_product.h). All ranks make the same calls; one thread.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// Returns "rank 3 on node1", for messages.
std::string name_of(const comm::Communicator& comm, int rank);

class Suspects {
 public:
  static constexpr int kEnough = 2;  // number of hints after which all ranks compute the known product

  explicit Suspects(const comm::Communicator& comm) : comm_(comm) {}  // it must outlive this object

  // Adds `times` hints to `rank`. Collective if they are enough; throws UntrustedError on all ranks if a result is
  // wrong.
  void suspect(int rank, int times);

 private:
  const comm::Communicator& comm_;
  std::vector<int> suspicions_;  // by rank
};

}  // namespace lockstep::train
