// Memory that all ranks of a node see (an MPI-3 shared window). Each rank allocates a segment, zero at first, and may
// read and write all segments. Ranks synchronise by atomics in this memory or by barriers. Constructor and destructor
// are collective over the communicator, whose ranks must share memory; the destructor is not after an error. If the
// node has too little free shared memory, all ranks throw the same Error.
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

  // Returns the segment of `rank`, which begins at a page and has the length that this rank passed.
  std::span<std::byte> segment(int rank) const { return segments_[static_cast<std::size_t>(rank)]; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::vector<std::span<std::byte>> segments_;
};

// Returns the free bytes of /dev/shm on this machine; the largest number if they are unknown.
std::size_t free_shared_memory();

}  // namespace lockstep::comm
