#include "lockstep/kernels/generic/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/elementwise.h"

namespace lockstep::kernels::generic {

namespace {

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
Sums<B> gradient_sums(const BatchNormView& v, std::int64_t cb, const T* x, const T* dy, PerLane<T, B> mean) {
  return two_sums<B>(v, cb, [=](std::int64_t i, std::size_t l) {
    const double d = static_cast<double>(dy[i]);
    return Terms{d, d * (static_cast<double>(x[i]) - static_cast<double>(mean[l]))};
  });
}

template <int B, class T>
PerLane<T, B> scale_of(const T* gamma, const T* inv_std, Lanes lanes) {
  PerLane<T, B> scale = load<B>(gamma, lanes, T(1));
  const PerLane<T, B> inverse = load<B>(inv_std, lanes, T(0));
  for (std::size_t l = 0; l < B; ++l) scale[l] *= inverse[l];
  return scale;
}

// dx = gamma inv_std (dy - sum dy / n - xhat sum dy xhat / n) = a dy + b (x - mean) + c, of the sums of dy and of
// dy (x - mean) over n elements.
template <int B, class T>
struct GradientFactors {
  PerLane<T, B> a{}, b{}, c{};
  void set(std::size_t lane, double gamma, double inverse, Terms sums, double n) {
    const double scale = gamma * inverse;
    a[lane] = static_cast<T>(scale);
    b[lane] = static_cast<T>(-scale * inverse * inverse * sums.b / n);
    c[lane] = static_cast<T>(-scale * sums.a / n);
  }
  void apply(const BatchNormView& v, std::int64_t cb, const T* x, const T* dy, PerLane<T, B> mean, T* dx) const {
    each<B>(v, cb, dx,
            [=, *this](std::int64_t i, std::size_t l) { return a[l] * dy[i] + (b[l] * (x[i] - mean[l]) + c[l]); });
  }
};

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

}  // namespace

template <class T>
void batch_norm_forward(const BatchNormView& v, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean,
                        T* inv_std, double* sums) {
  const std::int64_t n = v.batch * v.spatial;
  const double count = static_cast<double>(std::max<std::int64_t>(n, 1));
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    // One pass, shifted by an element of the channel: M2 = sum d^2 - (sum d)^2 / n loses at most a factor n of double's
    // precision, because the variance is at least (pivot - mean)^2 / n (Chan, Golub and LeVeque 1983).
    PerLane<T, B> pivot{}, centre{}, scale{};
    const PerLane<T, B> weight = load<B>(gamma, lanes, T(1));
    for (std::size_t l = 0; n > 0 && l < B; ++l) pivot[l] = x[cb * v.spatial * B + static_cast<std::int64_t>(l)];
    const Sums<B> s = two_sums<B>(v, cb, [=](std::int64_t i, std::size_t l) {
      const double d = static_cast<double>(x[i]) - static_cast<double>(pivot[l]);
      return Terms{d, d * d};
    });
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l) {
      const std::int64_t c = lanes.first + static_cast<std::int64_t>(l);
      const double average = static_cast<double>(pivot[l]) + s.first[l] / count;
      const double m2 = std::max(s.second[l] - s.first[l] * s.first[l] / count, 0.0);
      mean[c] = centre[l] = static_cast<T>(average);
      inv_std[c] = static_cast<T>(1 / std::sqrt(m2 / count + eps));
      scale[l] = weight[l] * inv_std[c];
      sums[c] = s.first[l] + static_cast<double>(n) * static_cast<double>(pivot[l]);
      sums[v.channels + c] = m2 + static_cast<double>(n) * average * average;
    }
    normalise<B>(v, cb, x, centre, scale, load<B>(beta, lanes, T(0)), y);
  });
}

template <class T>
void batch_norm_normalise(const BatchNormView& v, const T* x, const T* gamma, const T* beta, const T* mean,
                          const T* inv_std, T* y) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    const PerLane<T, B> scale = scale_of<B>(gamma, inv_std, lanes);
    normalise<B>(v, cb, x, load<B>(mean, lanes, T(0)), scale, load<B>(beta, lanes, T(0)), y);
  });
}

template <class T>
void batch_norm_mask(const BatchNormView& v, const T* x, const T* dy, const T* gamma, const T* beta, const T* mean,
                     const T* inv_std, T* g) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    const PerLane<T, B> scale = scale_of<B>(gamma, inv_std, lanes), centre = load<B>(mean, lanes, T(0)),
                        shift = load<B>(beta, lanes, T(0));
    each<B>(v, cb, g, [=](std::int64_t i, std::size_t l) {
      return (x[i] - centre[l]) * scale[l] + shift[l] <= T(0) ? T(0) : dy[i];
    });
  });
}

template <class T>
void batch_norm_backward(const BatchNormView& v, const T* x, const T* dy, const T* gamma, const T* mean,
                         const T* inv_std, T* dx, T* dgamma, T* dbeta) {
  const double count = static_cast<double>(std::max<std::int64_t>(v.batch * v.spatial, 1));
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    const PerLane<T, B> centre = load<B>(mean, lanes, T(0)), weight = load<B>(gamma, lanes, T(1));
    const Sums<B> s = gradient_sums<B>(v, cb, x, dy, centre);
    GradientFactors<B, T> factors;
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l) {
      const std::int64_t channel = lanes.first + static_cast<std::int64_t>(l);
      const double inverse = static_cast<double>(inv_std[channel]);
      store(dgamma, channel, s.second[l] * inverse);
      store(dbeta, channel, s.first[l]);
      factors.set(l, static_cast<double>(weight[l]), inverse, {s.first[l], s.second[l]}, count);
    }
    factors.apply(v, cb, x, dy, centre, dx);
  });
}

template <class T>
void batch_norm_moments(const BatchNormView& v, const T* x, double* moments) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    const auto s = two_sums<decltype(width)::value>(v, cb, [=](std::int64_t i, std::size_t) {
      const double value = static_cast<double>(x[i]);
      return Terms{value, value * value};
    });
    store_sums(v, lanes, s, moments);
  });
  moments[2 * v.channels] = static_cast<double>(v.batch * v.spatial);
}

template <class T>
void batch_norm_gradient_sums(const BatchNormView& v, const T* x, const T* dy, const T* mean, double* sums) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    store_sums(v, lanes, gradient_sums<B>(v, cb, x, dy, load<B>(mean, lanes, T(0))), sums);
  });
  sums[2 * v.channels] = static_cast<double>(v.batch * v.spatial);
}

template <class T>
void batch_norm_parameter_gradients(std::int64_t channels, const double* sums, const T* inv_std, T* dgamma, T* dbeta) {
  for (std::int64_t c = 0; c < channels; ++c) {
    dgamma[c] = static_cast<T>(sums[channels + c] * static_cast<double>(inv_std[c]));
    dbeta[c] = static_cast<T>(sums[c]);
  }
}

template <class T>
void batch_norm_gradient_apply(const BatchNormView& v, const T* x, const T* dy, const T* gamma, const T* mean,
                               const T* inv_std, const double* sums, T* dx) {
  const double count = std::max(sums[2 * v.channels], 1.0);
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    GradientFactors<B, T> factors;
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l) {
      const std::int64_t c = lanes.first + static_cast<std::int64_t>(l);
      factors.set(l, static_cast<double>(gamma[c]), static_cast<double>(inv_std[c]), {sums[c], sums[v.channels + c]},
                  count);
    }
    factors.apply(v, cb, x, dy, load<B>(mean, lanes, T(0)), dx);
  });
}

template <class T>
void batch_norm_inference(const BatchNormView& v, const T* x, const T* gamma, const T* beta, const T* running_mean,
                          const T* running_var, double eps, T* y) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    PerLane<T, B> scale = load<B>(gamma, lanes, T(1));
    const PerLane<T, B> inverse = inverse_std<B>(load<B>(running_var, lanes, T(1)), eps);
    for (std::size_t l = 0; l < B; ++l) scale[l] *= l < static_cast<std::size_t>(lanes.count) ? inverse[l] : T(0);
    normalise<B>(v, cb, x, load<B>(running_mean, lanes, T(0)), scale, load<B>(beta, lanes, T(0)), y);
  });
}

template <class T>
void batch_norm_inference_backward(const BatchNormView& v, const T* x, const T* dy, const T* gamma,
                                   const T* running_mean, const T* running_var, double eps, T* dx, T* dgamma,
                                   T* dbeta) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    constexpr int B = decltype(width)::value;
    PerLane<T, B> scale = load<B>(gamma, lanes, T(1));
    const PerLane<T, B> inverse = inverse_std<B>(load<B>(running_var, lanes, T(1)), eps);
    const Sums<B> s = gradient_sums<B>(v, cb, x, dy, load<B>(running_mean, lanes, T(0)));
    for (std::size_t l = 0; l < B; ++l) scale[l] *= l < static_cast<std::size_t>(lanes.count) ? inverse[l] : T(0);
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l) {
      const std::int64_t channel = lanes.first + static_cast<std::int64_t>(l);
      store(dgamma, channel, s.second[l] * static_cast<double>(inverse[l]));
      store(dbeta, channel, s.first[l]);
    }
    each<B>(v, cb, dx, [=](std::int64_t i, std::size_t l) { return scale[l] * dy[i]; });
  });
}

template <class T>
void channel_sum(const BatchNormView& v, const T* dy, T* out) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    const auto s = two_sums<decltype(width)::value>(v, cb, [=](std::int64_t i, std::size_t) {
      return Terms{static_cast<double>(dy[i]), 0.0};
    });
    for (std::int64_t l = 0; l < lanes.count; ++l) store(out, lanes.first + l, s.first[static_cast<std::size_t>(l)]);
  });
}

template <class T>
void add_channel_bias(const BatchNormView& v, T* y, const T* bias) {
  for_blocks(v, [&](auto width, std::int64_t cb, Lanes lanes) {
    const auto lane_bias = load<decltype(width)::value>(bias, lanes, T(0));
    each<decltype(width)::value>(v, cb, y, [=](std::int64_t i, std::size_t l) { return y[i] + lane_bias[l]; });
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                        \
  template void batch_norm_forward<T>(const BatchNormView&, const T*, const T*, const T*, double, T*, T*, T*,          \
                                      double*);                                                                        \
  template void batch_norm_normalise<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, T*);   \
  template void batch_norm_mask<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, const T*,   \
                                   T*);                                                                                \
  template void batch_norm_backward<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, T*, T*, \
                                       T*);                                                                            \
  template void batch_norm_moments<T>(const BatchNormView&, const T*, double*);                                        \
  template void batch_norm_gradient_sums<T>(const BatchNormView&, const T*, const T*, const T*, double*);              \
  template void batch_norm_parameter_gradients<T>(std::int64_t, const double*, const T*, T*, T*);                      \
  template void batch_norm_gradient_apply<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*,   \
                                             const double*, T*);                                                       \
  template void batch_norm_inference<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*,        \
                                        double, T*);                                                                   \
  template void batch_norm_inference_backward<T>(const BatchNormView&, const T*, const T*, const T*, const T*,         \
                                                 const T*, double, T*, T*, T*);                                        \
  template void channel_sum<T>(const BatchNormView&, const T*, T*);                                                    \
  template void add_channel_bias<T>(const BatchNormView&, T*, const T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
