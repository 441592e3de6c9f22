// Memory that all ranks of a node see (an MPI-3 shared window): each rank brings a segment, zero at first, and may read
// and write every other's. Ranks agree through atomics in it or barriers, MPI is needed for making and freeing alone.
// Making it is collective over the communicator, whose ranks share memory, and checks first that the node's shared
// memory has room: all ranks throw the same Error if it has not. Its end is collective too, except after an error.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class SharedWindow {
 public:
  SharedWindow(const Communicator& node, std::size_t bytes);
  ~SharedWindow();
  SharedWindow(SharedWindow&&) noexcept;
  SharedWindow& operator=(SharedWindow&&) noexcept;

  // Begins at a page; of the length that rank asked for.
  std::span<std::byte> segment(int rank) const { return segments_[static_cast<std::size_t>(rank)]; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::vector<std::span<std::byte>> segments_;
};

// Bytes that /dev/shm has free here; the largest number where that cannot be told.
std::size_t free_shared_memory();

}  // namespace lockstep::comm
