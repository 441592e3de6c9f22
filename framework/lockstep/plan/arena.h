// The one block of memory in which all plans of a model keep their intermediate values; as large as the largest plan
// needs. Growing moves it, so plans bind their pointers anew when the generation changes.
#pragma once

#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::plan {

class Arena {
 public:
  // Throws Error where there is not so much memory; then it is as large as before, and has moved.
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

// A value's memory during a plan, steps counted from 0: inclusive lifetime, then where it was put.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0, last = 0;
  std::size_t offset = 0;
};

// Gives each an offset such that no two that live at once overlap (greedy by size: Pisarchyk and Lee, "Efficient memory
// management for deep neural net inference", 2020). Returns the bytes that this takes.
std::size_t assign_offsets(std::vector<Lifetime*> lifetimes);

}  // namespace lockstep::plan
