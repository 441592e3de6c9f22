// Loops over n independent elements on raw pointers: map/map2 over functors, what epilogues and products need, and
// dropout. Outputs may be the same array as an input (not a shifted one). Every element depends on its
// own inputs alone, so results do not depend on threads. Nothing allocates.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "lockstep/core/independent.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {

// y[i] = f(x[i])
template <class T, class To, class F>
void map(std::int64_t n, const T* x, To* y, F f) {
  parallel_for(n, 1, [=](std::int64_t begin, std::int64_t end) {
    LOCKSTEP_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

// y[i] = f(a[i], b[i])
template <class T, class F>
void map2(std::int64_t n, const T* a, const T* b, T* y, F f) {
  parallel_for(n, 1, [=](std::int64_t begin, std::int64_t end) {
    LOCKSTEP_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) y[i] = f(a[i], b[i]);
  });
}

// Frequent functions, compiled once for float and double.
template <class T>
void fill(std::int64_t n, T value, T* y);
template <class T>
void relu_forward(std::int64_t n, const T* x, T* y);
// dx = dy where the output y is positive, else 0 (also where dy is infinite, unlike a product).
template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx);
template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y);
// y = a * x + b
template <class T>
void scale_shift(std::int64_t n, T a, T b, const T* x, T* y);

struct DropoutOptions {
  std::int64_t samples = 0, per_sample = 0;  // elements in logical order within a sample
  double p = 0.5;                            // probability of dropping, in [0, 1]; throws Error outside
  std::uint64_t key = 0;                     // of seed and call site
  std::uint64_t step = 0;
  const std::int64_t* sample_ids = nullptr;  // [samples], global: equal at every world size
};

// y = x / (1 - p) for kept elements, else 0. The choice is a pure function of (key, step, sample id, element): word
// element % 4 of philox(key, element / 4, mix(step, sample id)). The backward pass is the same call on dy.
template <class T>
void dropout(const DropoutOptions& options, const T* x, T* y);

struct NoiseOptions {
  std::int64_t samples = 0, per_sample = 0;
  std::uint64_t key = 0;  // of seed and call site
  std::uint64_t step = 0;
  const std::int64_t* sample_ids = nullptr;  // [samples], global
};

// Writes the first `per_sample` normal numbers of RandomStream(key, mix(step, sample id)) for each sample.
template <class T>
void normal_noise(const NoiseOptions& options, T* y);

}  // namespace lockstep::kernels::generic
