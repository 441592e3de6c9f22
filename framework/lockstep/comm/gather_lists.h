// Lists of the ranks, of any lengths, one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// Returns the elements of all ranks, in the order of the ranks, on every rank. Collective.
template <Transferable T>
std::vector<T> gather_lists(const Communicator& comm, std::span<const T> mine) {
  const std::vector<std::int64_t> counts = comm.allgather(std::ssize(mine));
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  std::vector<T> all(static_cast<std::size_t>(total));
  comm.allgatherv(ConstBuffer(mine), Buffer(std::span<T>(all)), counts);
  return all;
}

}  // namespace lockstep::comm
