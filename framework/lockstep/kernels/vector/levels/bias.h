// A bias per column of rows, and its gradient, for table.cpp.
#pragma once

#include "lockstep/kernels/vector/levels/lanes.h"

namespace lockstep::vector::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct Bias {
  using Forward = typename BiasTable<T>::Forward;
  using Backward = typename BiasTable<T>::Backward;

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
  static void put(const Backward& b, std::int64_t column, std::int64_t count, const double* sums) {
    for (std::int64_t l = 0; b.dbias && l < count; ++l) b.dbias[column + l] = static_cast<float>(sums[l]);
  }

  template <class Place>
  LOCKSTEP_INLINE static void group(const Backward& b, Place place, std::int64_t count) {
    double sums[kLanes] = {};
    for (std::int64_t r = 0; r < b.rows;) {
      const std::int64_t stop = r + kFold < b.rows ? r + kFold : b.rows;
      Lanes s = broadcast(0);
      for (; r < stop; ++r) s = s + row(b, r, place);
      add_to(sums, s);
    }
    put(b, place.at, count, sums);
  }

  // Four groups at a time, so that a visit to a row takes whole cache lines that follow each other.
  LOCKSTEP_INLINE static void four_groups(const Backward& b, std::int64_t at) {
    double sums[4 * kLanes] = {};
    for (std::int64_t r = 0; r < b.rows;) {
      const std::int64_t stop = r + kFold < b.rows ? r + kFold : b.rows;
      Lanes s0 = broadcast(0), s1 = s0, s2 = s0, s3 = s0;
      for (; r < stop; ++r) {
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
    put(b, at, 4 * kLanes, sums);
  }

  static void backward(const Backward& b) {
    std::int64_t at = 0;
    for (; at + 4 * kLanes <= b.columns; at += 4 * kLanes) four_groups(b, at);
    for (; at + kLanes <= b.columns; at += kLanes) group(b, Whole{at}, kLanes);
    if (at < b.columns) group(b, Part{at, b.columns - at}, b.columns - at);
  }

  static constexpr BiasTable<T> table{forward, backward};
};

}  // namespace
}  // namespace lockstep::vector::LOCKSTEP_LEVEL
