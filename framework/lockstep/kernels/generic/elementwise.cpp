#include "lockstep/kernels/generic/elementwise.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/partition.h"
#include "lockstep/core/random.h"

namespace lockstep::kernels::generic {

template <class T>
void fill(std::int64_t n, T value, T* y) {
  parallel_for(n, 1, [=](std::int64_t begin, std::int64_t end) { std::fill(y + begin, y + end, value); });
}

template <class T>
void relu_forward(std::int64_t n, const T* x, T* y) {
  map(n, x, y, [](T v) { return v < T(0) ? T(0) : v; });
}

template <class T>
void relu_backward(std::int64_t n, const T* y, const T* dy, T* dx) {
  map2(n, y, dy, dx, [](T out, T d) { return out <= T(0) ? T(0) : d; });
}

template <class T>
void add(std::int64_t n, const T* a, const T* b, T* y) {
  map2(n, a, b, y, [](T u, T v) { return u + v; });
}

template <class T>
void scale_shift(std::int64_t n, T a, T b, const T* x, T* y) {
  map(n, x, y, [a, b](T v) { return a * v + b; });
}

template <class T>
void dropout(const DropoutOptions& options, const T* x, T* y) {
  check(options.p >= 0 && options.p <= 1, "dropout", "probability is {}, expected 0 to 1", options.p);
  const DropoutOptions o = options;
  const T scale = o.p < 1 ? static_cast<T>(1 / (1 - o.p)) : T(0);
  const std::int64_t blocks = (o.per_sample + 3) / 4;  // of one Philox call each
  const auto body = [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sample = i / blocks, first = i % blocks * 4;
      const std::uint64_t high = mix(o.step, static_cast<std::uint64_t>(o.sample_ids[sample]));
      const Philox words = philox(o.key, static_cast<std::uint64_t>(first / 4), high);
      const std::int64_t count = std::min<std::int64_t>(4, o.per_sample - first);
      const T* in = x + sample * o.per_sample + first;
      T* out = y + sample * o.per_sample + first;
      for (std::int64_t j = 0; j < count; ++j) {
        out[j] = unit_interval(words[static_cast<std::size_t>(j)]) >= o.p ? in[j] * scale : T(0);
      }
    }
  };
  parallel_for(o.samples * blocks, 16, body);
}

template <class T>
void normal_noise(const NoiseOptions& options, T* y) {
  const NoiseOptions o = options;
  parallel_for(o.samples, std::max<std::int64_t>(1, 20 * o.per_sample), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      RandomStream random(o.key, mix(o.step, static_cast<std::uint64_t>(o.sample_ids[sample])));
      T* out = y + sample * o.per_sample;
      for (std::int64_t j = 0; j < o.per_sample; ++j) out[j] = static_cast<T>(random.normal());
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                         \
  template void fill<T>(std::int64_t, T, T*);                           \
  template void relu_forward<T>(std::int64_t, const T*, T*);            \
  template void relu_backward<T>(std::int64_t, const T*, const T*, T*); \
  template void add<T>(std::int64_t, const T*, const T*, T*);           \
  template void scale_shift<T>(std::int64_t, T, T, const T*, T*);       \
  template void dropout<T>(const DropoutOptions&, const T*, T*);        \
  template void normal_noise<T>(const NoiseOptions&, T*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
