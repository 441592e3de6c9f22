// Moves the average of the weights (optim/average.h), which is the last optimizer state, and exchanges it with the
// weights: each rank for the elements that it updates. Calls stand between two fences of all ranks; one thread.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/update/owned_parts.h"

namespace lockstep::parallel {

class AverageExchange {
 public:
  explicit AverageExchange(const OwnedParts& owned) : store_(owned.store()), owned_(owned) {}  // it outlives this

  // average += weight * (value - average); a weight of 1 copies the values.
  void add(double weight);
  // Exchanges values and averages, sends the values to other domains if these have no averages, and refreshes derived
  // copies. A second call restores all bits. Collective.
  void swap(const comm::Communicator& comm);

 private:
  template <class Visit>
  void visit(const Visit& visit);
  plan::ParameterStore& store_;
  const OwnedParts& owned_;
};

}  // namespace lockstep::parallel
