// The logistic function and tanh for the gates of recurrent layers. In f32 they compute in f32 throughout, for a third
// of what pointwise.h's take, which compute in doubles: errors are at most 3 units in the last place instead of 1, and
// the logistic function is 0 where it is below 2^-125. In f64 they are pointwise.h's.
#pragma once

#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

using NativeI32 = decltype(NativeF32{} < NativeF32{});

constexpr float kRounderF32 = 0x1.8p23F;  // a sum with it is rounded to a whole number
constexpr float kLn2HighF32 = 0x1.62e43p-1F, kLn2LowF32 = -0x1.05c61p-29F;
// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: Taylor's series.
constexpr float kExpF32[] = {1.0F / 2, 1.0F / 6, 1.0F / 24, 1.0F / 120, 1.0F / 720, 1.0F / 5040};

LOCKSTEP_INLINE NativeF32 constant_f32(float c) { return NativeF32{} + c; }
LOCKSTEP_INLINE NativeF32 absolute_f32(NativeF32 x) { return (NativeF32)((NativeI32)x & INT32_MAX); }

// e^x = power (1 + p), for |x| <= 87.
struct ExponentialF32 {
  NativeF32 power, p;
};
LOCKSTEP_INLINE ExponentialF32 exponential_f32(NativeF32 x) {
  const NativeF32 rounded = multiply_add(x, constant_f32(0x1.715476p0F), constant_f32(kRounderF32));
  const NativeF32 k = rounded - kRounderF32;
  NativeF32 r = multiply_add(k, constant_f32(-kLn2HighF32), x);
  r = multiply_add(k, constant_f32(-kLn2LowF32), r);
  NativeF32 q = constant_f32(kExpF32[5]);
#pragma GCC unroll 5
  for (int i = 4; i >= 0; --i) q = multiply_add(q, r, constant_f32(kExpF32[i]));
  const NativeI32 exponent = (NativeI32)rounded - ((NativeI32)constant_f32(kRounderF32) - 127);
  return {(NativeF32)(exponent << 23), multiply_add(r * r, q, r)};
}

// See formulas::sigmoid and formulas::tanh.
LOCKSTEP_INLINE NativeF32 logistic(NativeF32 x) {
  const NativeF32 a = absolute_f32(x);
  const ExponentialF32 e = exponential_f32(-(a > 87 ? constant_f32(87) : a));
  NativeF32 y = multiply_add(e.power, e.p, e.power);
  y = a > 87 ? NativeF32{} : y;
  return (x < 0 ? y : constant_f32(1)) / (1 + y);
}
LOCKSTEP_INLINE NativeF32 hyperbolic_tangent(NativeF32 x) {
  NativeF32 a = absolute_f32(x);
  a = a > 10 ? constant_f32(10) : a;
  const ExponentialF32 e = exponential_f32(a + a);
  const NativeF32 t = multiply_add(e.power, e.p, e.power - 1), y = t / (t + 2);
  return (NativeF32)((NativeI32)y | ((NativeI32)x & INT32_MIN));
}

LOCKSTEP_INLINE NativeF64 logistic(NativeF64 x) { return function::sigmoid{}(x); }
LOCKSTEP_INLINE NativeF64 hyperbolic_tangent(NativeF64 x) { return function::tanh{}(x); }

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
