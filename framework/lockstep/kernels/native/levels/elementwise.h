// Functions of n independent elements, for table.cpp.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// y = f(x) and y = f(a, b), sixteen at a time.
template <class X, class Y, class F>
LOCKSTEP_INLINE void map(std::int64_t n, const X* x, Y* y, F f) {
  for_positions(0, n, [=](auto position) { position.store(y, f(position.load(x))); });
}
template <class T, class F>
LOCKSTEP_INLINE void map(std::int64_t n, const T* a, const T* b, T* y, F f) {
  for_positions(0, n, [=](auto position) { position.store(y, f(position.load(a), position.load(b))); });
}

template <class X, class Y>
void convert(std::int64_t n, const X* x, Y* y) {
  map(n, x, y, [](Lanes v) { return v; });
}

template <class T>
struct Elementwise {
  static void relu(std::int64_t n, const T* x, T* y) {
    map(n, x, y, [](Lanes v) { return LOCKSTEP_LEVEL::relu(v); });
  }
  static void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx) {
    map(n, y, dy, dx, [](Lanes out, Lanes d) { return gate(out, d); });
  }
  static void add(std::int64_t n, const T* a, const T* b, T* y) {
    map(n, a, b, y, [](Lanes u, Lanes v) { return u + v; });
  }
  static constexpr ElementwiseTable<T> table{relu, relu_backward, add};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
