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

// Rows [rows][stride] of which `columns` are worked on; bias and dbias have one element per column. y may be x, dx may
// be dy or y.
template <class T>
struct BiasTable {
  struct Forward {
    std::int64_t rows, stride, columns;
    const T* x;
    const float* bias;
    T* y;
    bool relu;
  };
  struct Backward {
    std::int64_t rows, stride, columns;
    const T *dy, *y;  // y: null without ReLU
    T* dx;            // null: the sums alone
    float* dbias;     // null: dx alone
  };
  void (*forward)(const Forward&);    // y = [relu](x + bias)
  void (*backward)(const Backward&);  // dx = dy where y is positive, dbias = its sum over rows
};

// Elements [begin, end) of one channel block, counted over its samples: each has `segment` of them in a row, and the
// next begins `stride` elements later. Pointers that go with a strip point to the block in sample 0. Per-lane arrays
// belong to element % 16; for channel blocks of 1 and 8 they repeat.
struct Strip {
  std::int64_t segment, stride, begin, end;
};

struct alignas(64) NormaliseLanes {
  float mean[kLanes] = {}, scale[kLanes] = {}, shift[kLanes] = {};
};
struct alignas(64) GradientLanes {
  float dy[kLanes] = {}, x[kLanes] = {}, constant[kLanes] = {};
};

template <class T>
struct BatchNormTable {
  struct Normalise {
    const T *x, *residual;  // residual may be null
    T* y;
    bool relu;
  };
  // The ReLU's gradient is masked by y where it is given, else by what normalising x gives, without relu not at all.
  struct Gradient {
    const T *x, *dy, *y;
    T* dx;
    T* masked;  // null, or gets the masked dy, and then dx is made from it
    bool relu;
  };
  // Adds to sums [2][16]: d and d^2 with d = x - pivot.
  void (*moments)(const Strip&, const T* x, const float* pivot, double* sums);
  // y = [relu]((x - mean) * scale + shift [+ residual])
  void (*normalise)(const Strip&, const Normalise&, const NormaliseLanes&);
  // Adds to sums [2][16]: g and g * (x - mean), where g is the masked dy.
  void (*gradient_sums)(const Strip&, const Gradient&, const NormaliseLanes&, double* sums);
  // dx = g * lanes.dy + ((x - mean) * lanes.x + lanes.constant); `masked` was written by gradient_sums.
  void (*gradient)(const Strip&, const Gradient&, const NormaliseLanes&, const GradientLanes&);
};

// One row of the outputs of max pooling on blocks of 16 channels: x is the plane [in_h][in_w][16], y and position are
// the row [out_w][16]. NaN, ties and positions are as in generic/pool.h.
template <class T>
struct PoolTable {
  struct MaxRow {
    std::int64_t in_h, in_w, out_w, kernel_h, kernel_w, dilation_h, dilation_w;
    std::int64_t top, left, stride_w;  // of the row's first window, which may lie outside the image
    const T* x;
    T* y;
    std::uint8_t* position;
  };
  void (*max_row)(const MaxRow&);
};

struct ConvertTable {
  void (*to_bf16)(std::int64_t n, const float* x, Bf16* y);
  void (*to_f32)(std::int64_t n, const Bf16* x, float* y);
};

// Multiply-adds in registers, for measuring what the processor can do: returns how many operations it did, 0 where the
// processor has no such instructions. `out` gets kLanes floats at most, so that none can be left out.
struct PeakTable {
  std::int64_t (*f32)(std::int64_t rounds, float* out);
  std::int64_t (*bf16)(std::int64_t rounds, float* out);  // dot products of pairs
};

}  // namespace lockstep::vector

namespace lockstep {

struct VectorKernels {
  vector::ConvertTable convert;
  vector::ElementwiseTable<float> elementwise_f32;
  vector::ElementwiseTable<vector::Bf16> elementwise_bf16;
  vector::BiasTable<float> bias_f32;
  vector::BiasTable<vector::Bf16> bias_bf16;
  vector::BatchNormTable<float> batch_norm_f32;
  vector::BatchNormTable<vector::Bf16> batch_norm_bf16;
  vector::PeakTable peak;
  vector::PoolTable<float> pool_f32;
  vector::PoolTable<vector::Bf16> pool_bf16;
};

}  // namespace lockstep
