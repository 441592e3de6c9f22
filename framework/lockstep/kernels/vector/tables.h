// What one instruction set level offers: tables of functions, one table per family, filled in by the sources in
// levels/. Every function is serial, works on the range it is given and allocates nothing; drivers beside this header
// (batch_norm.h, elementwise.h) share the ranges out to threads. This header is compiled into every level, so it holds
// data only: an inline function here would be merged by the linker across levels. The bits of a result do not depend on
// the level.
#pragma once

#include <cstdint>

namespace lockstep::vector {

// The upper half of a float. Rounding is to nearest even and keeps NaN; arithmetic is in f32.
using Bf16 = std::uint16_t;

inline constexpr int kLanes = 16;  // of every level: narrower machines take several registers

// T is float or Bf16. Arrays hold n elements; an output may be one of the inputs, not a shifted one.
template <class T>
struct ElementwiseTable {
  void (*relu)(std::int64_t n, const T* x, T* y);
  void (*relu_backward)(std::int64_t n, const T* y, const T* dy, T* dx);  // dx = y <= 0 ? 0 : dy
  void (*add)(std::int64_t n, const T* a, const T* b, T* y);
  void (*add_relu)(std::int64_t n, const T* a, const T* b, T* y);
};

struct ConvertTable {
  void (*to_bf16)(std::int64_t n, const float* x, Bf16* y);
  void (*to_f32)(std::int64_t n, const Bf16* x, float* y);
};

}  // namespace lockstep::vector

namespace lockstep {

struct VectorKernels {
  vector::ConvertTable convert;
  vector::ElementwiseTable<float> elementwise_f32;
  vector::ElementwiseTable<vector::Bf16> elementwise_bf16;
};

}  // namespace lockstep
