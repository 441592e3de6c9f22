// Memory that the next piece of work touches, handed out a little at a time to micro-kernels, which prefetch it between
// their tiles. Addresses only: nothing is read here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/kernels/native/blocked_tables.h"

namespace lockstep::kernels::native {

// Segments [outer][inner], in cache lines of 16 floats. A segment of the first outer index begins at line `skip`, any
// other at line 0; a segment of the last outer index ends at line `last_end`, any other at line `end`.
struct MemoryRegion {
  const float* base = nullptr;
  std::int64_t outer = 0, outer_stride = 0, inner = 0, inner_stride = 0;  // strides in elements
  std::int64_t skip = 0, end = 0, last_end = 0;

  std::int64_t begin_of(std::int64_t i) const { return i == 0 ? skip : 0; }
  std::int64_t end_of(std::int64_t i) const { return i == outer - 1 ? last_end : end; }
  std::int64_t lines() const { return outer == 0 ? 0 : inner * ((outer - 1) * end + last_end - skip); }
};

class MemoryAhead {
 public:
  MemoryAhead() = default;
  // Hands the regions out in about `calls` pieces.
  MemoryAhead(const MemoryRegion& first, const MemoryRegion& second, std::int64_t calls)
      : regions_{first, second}, per_call_((first.lines() + second.lines() + calls - 1) / calls) {}

  BlockedAhead next() {
    credit_ += per_call_;
    while (region_ < 2) {
      const MemoryRegion& r = regions_[region_];
      const std::int64_t begin = r.begin_of(outer_) + done_, left = outer_ < r.outer ? r.end_of(outer_) - begin : 0;
      if (outer_ >= r.outer) {
        ++region_;
        outer_ = inner_ = done_ = 0;
      } else if (left <= 0) {
        done_ = 0;
        if (++inner_ >= r.inner) {
          inner_ = 0;
          ++outer_;
        }
      } else {
        const std::int64_t lines = std::min(credit_, left);
        credit_ -= lines;
        done_ += lines;
        return {r.base + outer_ * r.outer_stride + inner_ * r.inner_stride + begin * 16, lines};
      }
    }
    return {};
  }

 private:
  MemoryRegion regions_[2];
  std::int64_t per_call_ = 0, credit_ = 0, region_ = 0, outer_ = 0, inner_ = 0, done_ = 0;
};

}  // namespace lockstep::kernels::native
