#include <algorithm>

#include "lockstep/kernels/generic/batch_norm_lanes.h"

namespace lockstep::kernels::generic {
namespace {

template <int B, class T>
Sums<B> gradient_sums(const BatchNormView& v, std::int64_t cb, const T* x, const T* dy, PerLane<T, B> mean) {
  return two_sums<B>(v, cb, [=](std::int64_t i, std::size_t l) {
    const double d = static_cast<double>(dy[i]);
    return Terms{d, d * (static_cast<double>(x[i]) - static_cast<double>(mean[l]))};
  });
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

}  // namespace

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

#define LOCKSTEP_INSTANTIATE(T)                                                                                        \
  template void batch_norm_mask<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, const T*,   \
                                   T*);                                                                                \
  template void batch_norm_backward<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, T*, T*, \
                                       T*);                                                                            \
  template void batch_norm_gradient_sums<T>(const BatchNormView&, const T*, const T*, const T*, double*);              \
  template void batch_norm_parameter_gradients<T>(std::int64_t, const double*, const T*, T*, T*);                      \
  template void batch_norm_gradient_apply<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*,   \
                                             const double*, T*);                                                       \
  template void batch_norm_inference_backward<T>(const BatchNormView&, const T*, const T*, const T*, const T*,         \
                                                 const T*, double, T*, T*, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
