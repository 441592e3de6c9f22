// exp, tanh and erf of f32 in f32, for pointwise.h: relative errors below 2^-23. Sums of products are rounded once
// (multiply_add()), so that all levels have the same bits. Coefficients are Chebyshev interpolations.
#pragma once

#include "lockstep/kernels/native/levels/math.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {
namespace single {

LOCKSTEP_INLINE NativeF32 constant(float c) { return NativeF32{} + c; }
LOCKSTEP_INLINE NativeF32 absolute(NativeF32 x) { return (NativeF32)((NativeU32)x & 0x7fffffffU); }
LOCKSTEP_INLINE NativeF32 with_sign_of(NativeF32 magnitude, NativeF32 sign) {
  return (NativeF32)((NativeU32)magnitude | ((NativeU32)sign & 0x80000000U));
}
// c[0] + c[1] x + ...
template <int N>
LOCKSTEP_INLINE NativeF32 polynomial(NativeF32 x, const float (&c)[N]) {
  NativeF32 sum = constant(c[N - 1]);
#pragma GCC unroll 12
  for (int i = N - 2; i >= 0; --i) sum = multiply_add(sum, x, constant(c[i]));
  return sum;
}

// e^x = 2^n (1 + p)
struct Exponential {
  NativeU32 n;
  NativeF32 p;
};
LOCKSTEP_INLINE NativeF32 power_of_two(NativeU32 n) { return (NativeF32)((n + 127) << 23); }
LOCKSTEP_INLINE Exponential exponential(NativeF32 x) {
  constexpr float kRounder = 12582912.0F;  // 1.5 2^23: a sum with it is rounded to a whole number
  constexpr float kLog2E = 0x1.715476p+0F, kLn2High = 0x1.62e4p-1F, kLn2Low = 0x1.7f7d1cp-20F;
  constexpr float kRest[] = {0.5F,
                             0.1666666716337204F,
                             0.04166646674275398F,
                             0.00833331048488617F,
                             0.001393364742398262F,
                             0.00019890988187398762F};
  const NativeF32 shifted = multiply_add(x, constant(kLog2E), constant(kRounder)), n = shifted - kRounder;
  const NativeF32 r = multiply_add(n, constant(-kLn2Low), multiply_add(n, constant(-kLn2High), x));
  return {(NativeU32)shifted - 0x4b400000U, multiply_add(r * r, polynomial(r, kRest), r)};
}

LOCKSTEP_INLINE NativeF32 exp(NativeF32 x) {
  using NativeI32 __attribute__((vector_size(kNative * 4))) = std::int32_t;
  x = x < -105 ? constant(-105) : x;
  x = x > 89 ? constant(89) : x;
  const Exponential e = exponential(x);
  const NativeU32 half = (NativeU32)((NativeI32)e.n >> 1);  // in two steps, as 2^n may be no number
  return (1 + e.p) * power_of_two(half) * power_of_two(e.n - half);
}

// tanh a = 1 - 2 / (e^(2 a) + 1)
LOCKSTEP_INLINE NativeF32 tanh(NativeF32 x) {
  constexpr float kNear[] = {-0.3333333432674408F,   0.13333311676979065F,   -0.05396288260817528F,
                             0.021817760542035103F,  -0.008621064014732838F, 0.0029870453290641308F,
                             -0.0006345422007143497F};
  NativeF32 a = absolute(x);
  a = a > 10 ? constant(10) : a;
  const NativeF32 square = a * a;
  const NativeF32 near = multiply_add(a * square, polynomial(square, kNear), a);
  const Exponential e = exponential(a + a);
  const NativeF32 far = 1 - 2 / ((1 + e.p) * power_of_two(e.n) + 1);
  return with_sign_of(a < 0.8F ? near : far, x);
}

// erf a = a + a P(a^2), or 1 - e^Q(a)
LOCKSTEP_INLINE NativeF32 erf(NativeF32 x) {
  constexpr float kNear[] = {0.12837916612625122F,    -0.37612637877464294F,  0.11283782124519348F,
                             -0.026865430176258087F,  0.005221031606197357F,  -0.0008484080317430198F,
                             0.00011265958892181516F, -9.667044650996104e-06F};
  constexpr float kFar[] = {0.0003209143760614097F, -1.1302367448806763F,     -0.6318202614784241F,
                            -0.11008568108081818F,  0.02642437070608139F,     -0.004760747775435448F,
                            0.0005970529746264219F, -4.6087447117315605e-05F, 1.6386372863053111e-06F};
  NativeF32 a = absolute(x);
  a = a > 4 ? constant(4) : a;
  const NativeF32 near = multiply_add(a, polynomial(a * a, kNear), a);
  const Exponential e = exponential(polynomial(a, kFar));
  const NativeF32 far = 1 - (1 + e.p) * power_of_two(e.n);
  return with_sign_of(a < 1 ? near : far, x);
}

}  // namespace single
}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
