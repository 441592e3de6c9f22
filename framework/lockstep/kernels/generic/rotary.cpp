#include "lockstep/kernels/generic/rotary.h"

#include <algorithm>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/independent.h"
#include "lockstep/core/math.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

// Turns the pairs (x[i first], x[i first + apart]) of one head.
template <class T, class Angle>
void turn(std::int64_t pairs, std::int64_t step, std::int64_t apart, const Angle* cosines, const Angle* sines,
          const T* x, T* y) {
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Angle a = static_cast<Angle>(x[i * step]), b = static_cast<Angle>(x[i * step + apart]);
    y[i * step] = static_cast<T>(a * cosines[i] - b * sines[i]);
    y[i * step + apart] = static_cast<T>(a * sines[i] + b * cosines[i]);
  }
}

}  // namespace

template <class T>
void rotary_angles(const RotaryShape& s, std::int64_t position, T* cosines) {
  const std::int64_t pairs = s.op.width / 2;
  const double at = static_cast<double>(position + s.op.position) * s.op.scale;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(s.op.width);
    const double angle = at * math::pow(s.op.base, power);
    cosines[i] = static_cast<T>(math::cos(angle));
    cosines[pairs + i] = static_cast<T>(s.op.inverse ? -math::sin(angle) : math::sin(angle));
  }
}

template <class T, class Angle>
void rotate(const RotaryShape& s, const Angle* angles, bool by_sample, const T* x, T* y) {
  const std::int64_t pairs = s.op.width / 2, row = s.heads * s.width;
  const std::int64_t step = s.op.neighbours ? 2 : 1, apart = s.op.neighbours ? 1 : pairs;
  parallel_for(s.samples * s.steps, 2 * row, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const Angle* const cosines = angles + (by_sample ? r : r % s.steps) * s.op.width;
      for (std::int64_t h = 0; h < s.op.heads; ++h) {
        const std::int64_t at = r * row + h * s.width;
        turn(pairs, step, apart, cosines, cosines + pairs, x + at, y + at);
        if (x != y) std::copy_n(x + at + s.op.width, s.width - s.op.width, y + at + s.op.width);
      }
      const std::int64_t rest = s.op.heads * s.width;
      if (x != y) std::copy_n(x + r * row + rest, row - rest, y + r * row + rest);
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T, Angle) \
  template void rotate<T, Angle>(const RotaryShape&, const Angle*, bool, const T*, T*);
LOCKSTEP_INSTANTIATE(float, float)
LOCKSTEP_INSTANTIATE(double, double)
LOCKSTEP_INSTANTIATE(BFloat16, float)
#undef LOCKSTEP_INSTANTIATE
template void rotary_angles<float>(const RotaryShape&, std::int64_t, float*);
template void rotary_angles<double>(const RotaryShape&, std::int64_t, double*);

}  // namespace lockstep::kernels::generic
