// Items of a kernel that threads take one after the other, each thread with scratch memory of its own.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/rounding.h"
#include "lockstep/kernels/native/tables.h"

namespace lockstep::kernels::native {

// Returns the number of threads of a kernel that is built now.
inline std::int64_t worker_count() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

// Hands out parts of one worker's scratch memory, each at a multiple of a cache line.
class Scratch {
 public:
  explicit Scratch(float* begin) : begin_(begin) {}  // null: to learn the size
  float* take(std::int64_t count) {
    float* const part = begin_ != nullptr ? begin_ + used_ : nullptr;
    used_ += rounded_up(count, kLanes);
    return part;
  }
  std::int64_t used() const { return used_; }

 private:
  float* begin_;
  std::int64_t used_ = 0;
};

// Calls item(index, scratch) for each item, on `workers` threads with `size` floats of scratch memory each.
template <class Item>
void for_items(std::int64_t items, std::int64_t workers, float* scratch, std::int64_t size, const Item& item) {
  std::atomic<std::int64_t> next = 0;
  constexpr std::int64_t kMuch = 1 << 20;  // an item is long: threads are woken for few of them
  parallel_for(std::min(workers, items), kMuch, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t w = begin; w < end; ++w) {
      for (std::int64_t i = next++; i < items; i = next++) item(i, scratch + w * size);
    }
  });
}

}  // namespace lockstep::kernels::native
