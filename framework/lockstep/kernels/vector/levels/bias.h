// A bias per column of rows, and its gradient, for table.cpp.
#pragma once

#include "lockstep/kernels/vector/levels/lanes.h"

namespace lockstep::vector::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct Bias {
  using Forward = typename BiasTable<T>::Forward;
  using Backward = typename BiasTable<T>::Backward;

  static constexpr std::int64_t kPanel = 512;
  struct Range {
    std::int64_t begin, end;
  };

  template <bool kRelu>
  LOCKSTEP_INLINE static void add(const Forward& f) {
    for (std::int64_t r = 0; r < f.rows; ++r) {
      const T* x = f.x + r * f.stride;
      T* y = f.y + r * f.stride;
      for_places(0, f.columns, [=](auto place) {
        const Lanes sum = place.load(x) + place.load(f.bias);
        place.store(y, kRelu ? relu(sum) : sum);
      });
    }
  }
  static void forward(const Forward& f) { f.relu ? add<true>(f) : add<false>(f); }

  // The masked gradient of one row.
  template <class Place>
  LOCKSTEP_INLINE static Lanes row(const Backward& b, std::int64_t r, Place place) {
    Lanes d = place.load(b.dy + r * b.stride);
    if (b.y) d = gate(place.load(b.y + r * b.stride), d);
    if (b.dx) place.store(b.dx + r * b.stride, d);
    return d;
  }
  // Adds its sum over rows [begin, end) to the double sums of those columns: four groups of columns, or one.
  LOCKSTEP_INLINE static void four(const Backward& b, Range rows, std::int64_t at, double* sums) {
    Lanes s0 = broadcast(0), s1 = s0, s2 = s0, s3 = s0;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      s0 = s0 + row(b, r, Whole{at});
      s1 = s1 + row(b, r, Whole{at + kLanes});
      s2 = s2 + row(b, r, Whole{at + 2 * kLanes});
      s3 = s3 + row(b, r, Whole{at + 3 * kLanes});
    }
    add_to(sums, s0);
    add_to(sums + kLanes, s1);
    add_to(sums + 2 * kLanes, s2);
    add_to(sums + 3 * kLanes, s3);
  }
  template <class Place>
  LOCKSTEP_INLINE static void one(const Backward& b, Range rows, Place place, double* sums) {
    Lanes s = broadcast(0);
    for (std::int64_t r = rows.begin; r < rows.end; ++r) s = s + row(b, r, place);
    add_to(sums, s);
  }

  // Columns [first, last), at most kPanel: few rows at a time over all of them, which walks through memory in order.
  static void panel(const Backward& options, std::int64_t first, std::int64_t last) {
    const Backward b = options;  // a copy that no store can change
    double sums[kPanel] = {};
    for (std::int64_t r = 0; r < b.rows; r += kFold) {
      const Range rows{r, r + kFold < b.rows ? r + kFold : b.rows};
      std::int64_t at = first;
      for (; at + 4 * kLanes <= last; at += 4 * kLanes) four(b, rows, at, sums + (at - first));
      for (; at + kLanes <= last; at += kLanes) one(b, rows, Whole{at}, sums + (at - first));
      if (at < last) one(b, rows, Part{at, last - at}, sums + (at - first));
    }
    if (!b.dbias) return;
    for (std::int64_t c = first; c < last; ++c) b.dbias[c] = static_cast<float>(sums[c - first]);
  }
  static void backward(const Backward& b) {
    for (std::int64_t at = 0; at < b.columns; at += kPanel) {
      panel(b, at, at + kPanel < b.columns ? at + kPanel : b.columns);
    }
  }

  static constexpr BiasTable<T> table{forward, backward};
};

}  // namespace
}  // namespace lockstep::vector::LOCKSTEP_LEVEL
