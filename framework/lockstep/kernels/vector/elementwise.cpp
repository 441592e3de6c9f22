#include "lockstep/kernels/vector/elementwise.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::vector {
namespace {

constexpr std::int64_t kGrain = 1024;  // elements, and columns' worth of whole cache lines, that stay on one thread
constexpr std::int64_t kColumns = 64;

template <class T>
const ElementwiseTable<T>& table(const VectorKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.elementwise_f32;
  } else {
    return kernels.elementwise_bf16;
  }
}
template <class T>
const BiasTable<T>& bias_table(const VectorKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.bias_f32;
  } else {
    return kernels.bias_bf16;
  }
}

// Calls body(first, count) for parts of n elements.
template <class Body>
void in_parts(std::int64_t n, const Body& body) {
  parallel_for((n + kGrain - 1) / kGrain, kGrain, [&](std::int64_t begin, std::int64_t end) {
    body(begin * kGrain, std::min(n, end * kGrain) - begin * kGrain);
  });
}

}  // namespace

void convert(std::int64_t n, const float* x, Bf16* y, const VectorKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { kernels.convert.to_bf16(count, x + i, y + i); });
}
void convert(std::int64_t n, const Bf16* x, float* y, const VectorKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { kernels.convert.to_f32(count, x + i, y + i); });
}

template <class T>
void relu(std::int64_t n, const T* x, T* y, const VectorKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { table<T>(kernels).relu(count, x + i, y + i); });
}
template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx, const VectorKernels& kernels) {
  in_parts(n,
           [&](std::int64_t i, std::int64_t count) { table<T>(kernels).relu_backward(count, y + i, dy + i, dx + i); });
}
template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y, const VectorKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { table<T>(kernels).add(count, a + i, b + i, y + i); });
}
template <class T>
void add_relu(std::int64_t n, const T* a, const T* b, T* y, const VectorKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { table<T>(kernels).add_relu(count, a + i, b + i, y + i); });
}

template <class T>
void bias_forward(const BiasForward<T>& o, const VectorKernels& kernels) {
  parallel_for(o.rows, o.columns, [&](std::int64_t begin, std::int64_t end) {
    bias_table<T>(kernels).forward({.rows = end - begin,
                                    .stride = o.columns,
                                    .columns = o.columns,
                                    .x = o.x + begin * o.columns,
                                    .bias = o.bias,
                                    .y = o.y + begin * o.columns,
                                    .relu = o.relu});
  });
}

// Threads share the columns, so every sum is one thread's.
template <class T>
void bias_backward(const BiasBackward<T>& o, const VectorKernels& kernels) {
  parallel_for((o.columns + kColumns - 1) / kColumns, o.rows * kColumns, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * kColumns;
    bias_table<T>(kernels).backward({.rows = o.rows,
                                     .stride = o.columns,
                                     .columns = std::min(o.columns, end * kColumns) - at,
                                     .dy = o.dy + at,
                                     .y = o.y ? o.y + at : nullptr,
                                     .dx = o.dx ? o.dx + at : nullptr,
                                     .dbias = o.dbias ? o.dbias + at : nullptr});
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                               \
  template void relu<T>(std::int64_t, const T*, T*, const VectorKernels&);                    \
  template void relu_backward<T>(std::int64_t, const T*, const T*, T*, const VectorKernels&); \
  template void add<T>(std::int64_t, const T*, const T*, T*, const VectorKernels&);           \
  template void add_relu<T>(std::int64_t, const T*, const T*, T*, const VectorKernels&);      \
  template void bias_forward<T>(const BiasForward<T>&, const VectorKernels&);                 \
  template void bias_backward<T>(const BiasBackward<T>&, const VectorKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::vector
