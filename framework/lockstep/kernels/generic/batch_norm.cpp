#include "lockstep/kernels/generic/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "lockstep/kernels/generic/batch_norm_lanes.h"

namespace lockstep::kernels::generic {

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

#define LOCKSTEP_INSTANTIATE(T)                                                                                      \
  template void batch_norm_forward<T>(const BatchNormView&, const T*, const T*, const T*, double, T*, T*, T*,        \
                                      double*);                                                                      \
  template void batch_norm_normalise<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*, T*); \
  template void batch_norm_moments<T>(const BatchNormView&, const T*, double*);                                      \
  template void batch_norm_inference<T>(const BatchNormView&, const T*, const T*, const T*, const T*, const T*,      \
                                        double, T*);                                                                 \
  template void channel_sum<T>(const BatchNormView&, const T*, T*);                                                  \
  template void add_channel_bias<T>(const BatchNormView&, T*, const T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
