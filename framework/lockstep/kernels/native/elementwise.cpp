#include "lockstep/kernels/native/elementwise.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kGrain = 1024;  // elements that stay on one thread

template <class T>
const ElementwiseTable<T>& table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.elementwise_f32;
  } else {
    return kernels.elementwise_bf16;
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

void convert(std::int64_t n, const float* x, Bf16* y, const NativeKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { kernels.convert.to_bf16(count, x + i, y + i); });
}
void convert(std::int64_t n, const Bf16* x, float* y, const NativeKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { kernels.convert.to_f32(count, x + i, y + i); });
}

template <class T>
void relu(std::int64_t n, const T* x, T* y, const NativeKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { table<T>(kernels).relu(count, x + i, y + i); });
}
template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx, const NativeKernels& kernels) {
  in_parts(n,
           [&](std::int64_t i, std::int64_t count) { table<T>(kernels).relu_backward(count, y + i, dy + i, dx + i); });
}
template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y, const NativeKernels& kernels) {
  in_parts(n, [&](std::int64_t i, std::int64_t count) { table<T>(kernels).add(count, a + i, b + i, y + i); });
}
#define LOCKSTEP_INSTANTIATE(T)                                                               \
  template void relu<T>(std::int64_t, const T*, T*, const NativeKernels&);                    \
  template void relu_backward<T>(std::int64_t, const T*, const T*, T*, const NativeKernels&); \
  template void add<T>(std::int64_t, const T*, const T*, T*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
