// The block of memory in which all plans of a model keep their intermediate values; it is as large as the largest plan
// needs. When it grows it moves, so a plan binds its pointers again after the generation has changed. One thread.
#pragma once

#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::plan {

class Arena {
 public:
  // Makes the arena at least this large. Throws Error where memory is short; it then keeps its size, but has moved.
  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    const std::size_t before = bytes_;
    release();  // first, so that old and new never exist together
    try {
      allocate(bytes);
    } catch (const Error&) {
      allocate(before);
      throw;
    }
  }
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }
  int generation() const { return generation_; }

 private:
  void release() {
    memory_.reset();
    bytes_ = 0;
    ++generation_;
  }
  void allocate(std::size_t bytes) {
    memory_ = allocate_aligned(bytes);
    bytes_ = bytes;
  }

  AlignedBuffer memory_;
  std::size_t bytes_ = 0;
  int generation_ = 0;
};

// The memory of a value in a plan: its size, its first and last step (counted from 0), and its offset in the arena.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0, last = 0;
  std::size_t offset = 0;
};

// Sets offsets such that no two values that live at the same step overlap, greedily (Pisarchyk and Lee, "Efficient
// memory management for deep neural net inference" (2020)) in the one of several orders that needs the fewest bytes,
// and returns these.
std::size_t assign_offsets(std::vector<Lifetime*> lifetimes);

}  // namespace lockstep::plan
