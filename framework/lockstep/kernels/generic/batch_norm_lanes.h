// The part that the passes of batch normalisation share: loops over channel blocks, per-channel values in lanes, and
// sums per lane. Internal to batch_norm.cpp and batch_norm_backward.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::kernels::generic {

template <class T, int B>
using PerLane = std::array<T, B>;

// The channels of one block: first channel, and how many of its B lanes are channels and not padding.
struct Lanes {
  std::int64_t first, count;
};

// Calls body(integral_constant B, channel block, lanes) for every channel block.
template <class Body>
void for_blocks(const BatchNormView& v, const Body& body) {
  const auto run = [&](auto width) {
    parallel_for(v.blocks(), v.batch * v.spatial * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t cb = begin; cb < end; ++cb) {
        body(width, cb, Lanes{cb * width, std::min<std::int64_t>(width, v.channels - cb * width)});
      }
    });
  };
  switch (v.block) {
    case 1:
      return run(std::integral_constant<int, 1>{});
    case 8:
      return run(std::integral_constant<int, 8>{});
    case 16:
      return run(std::integral_constant<int, 16>{});
    default:
      fail("batch_norm", "channel block is {}, expected 1, 8 or 16", v.block);
  }
}

// Loads a per-channel array; padding lanes get 0, a null array `absent`.
template <int B, class T>
PerLane<T, B> load(const T* values, Lanes lanes, T absent) {
  PerLane<T, B> out{};
  for (std::int64_t l = 0; l < lanes.count; ++l) {
    out[static_cast<std::size_t>(l)] = values ? values[lanes.first + l] : absent;
  }
  return out;
}

struct Terms {
  double a, b;
};

template <int B>
struct Sums {
  PerLane<double, B> first{}, second{};
};

// Sums over batch and spatial of term(index, lane) = {u, v}, per lane; a lone channel is summed on eight lanes of
// positions, a width that is fixed so that the order does not follow the machine's vectors.
template <int B, class Term>
Sums<B> two_sums(const BatchNormView& v, std::int64_t cb, const Term& term) {
  constexpr std::int64_t kWidth = std::max(B, 8);
  const auto lane = [](std::int64_t l) { return static_cast<std::size_t>(B == 1 ? 0 : l); };
  double first[kWidth] = {}, second[kWidth] = {};
  for (std::int64_t n = 0; n < v.batch; ++n) {
    std::int64_t i = (n * v.blocks() + cb) * v.spatial * B;
    const std::int64_t end = i + v.spatial * B;
    for (; i + kWidth <= end; i += kWidth) {
      for (std::int64_t l = 0; l < kWidth; ++l) {
        const Terms t = term(i + l, lane(l));
        first[l] += t.a;
        second[l] += t.b;
      }
    }
    for (std::int64_t l = 0; i < end; ++i, ++l) {
      const Terms t = term(i, lane(l));
      first[l] += t.a;
      second[l] += t.b;
    }
  }
  Sums<B> total;
  for (std::int64_t l = 0; l < kWidth; ++l) {
    total.first[lane(l)] += first[l];
    total.second[lane(l)] += second[l];
  }
  return total;
}

// out[index] = f(index, lane) over a channel block.
template <int B, class T, class F>
void each(const BatchNormView& v, std::int64_t cb, T* out, const F& f) {
  for (std::int64_t n = 0; n < v.batch; ++n) {
    const std::int64_t base = (n * v.blocks() + cb) * v.spatial * B;
    if constexpr (B == 1) {
#pragma omp simd
      for (std::int64_t i = base; i < base + v.spatial; ++i) out[i] = f(i, 0);
    } else {
      for (std::int64_t i = base; i < base + v.spatial * B; i += B) {
#pragma omp simd
        for (std::size_t l = 0; l < B; ++l)
          out[i + static_cast<std::int64_t>(l)] = f(i + static_cast<std::int64_t>(l), l);
      }
    }
  }
}

// out = (x - mean) * scale + shift
template <int B, class T>
void normalise(const BatchNormView& v, std::int64_t cb, const T* x, PerLane<T, B> mean, PerLane<T, B> scale,
               PerLane<T, B> shift, T* y) {
  each<B>(v, cb, y, [=](std::int64_t i, std::size_t l) { return (x[i] - mean[l]) * scale[l] + shift[l]; });
}

template <int B, class T>
PerLane<T, B> scale_of(const T* gamma, const T* inv_std, Lanes lanes) {
  PerLane<T, B> scale = load<B>(gamma, lanes, T(1));
  const PerLane<T, B> inverse = load<B>(inv_std, lanes, T(0));
  for (std::size_t l = 0; l < B; ++l) scale[l] *= inverse[l];
  return scale;
}

template <class T>
void store(T* array, std::int64_t i, double value) {
  if (array) array[i] = static_cast<T>(value);
}

template <int B>
void store_sums(const BatchNormView& v, Lanes lanes, const Sums<B>& s, double* sums) {
  for (std::int64_t l = 0; l < lanes.count; ++l) {
    sums[lanes.first + l] = s.first[static_cast<std::size_t>(l)];
    sums[v.channels + lanes.first + l] = s.second[static_cast<std::size_t>(l)];
  }
}

template <int B, class T>
PerLane<T, B> inverse_std(PerLane<T, B> variance, double eps) {
  for (T& v : variance) v = static_cast<T>(1 / std::sqrt(static_cast<double>(v) + eps));
  return variance;
}

}  // namespace lockstep::kernels::generic
