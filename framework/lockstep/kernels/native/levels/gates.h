// The logistic function and tanh for the gates of recurrent layers. In f32 they take fewer operations than
// pointwise.h's: errors are at most 3 units in the last place instead of 1, and the logistic function is 0 where it is
// below 2^-125. In f64 they are pointwise.h's.
#pragma once

#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// See formulas::sigmoid and formulas::tanh.
LOCKSTEP_INLINE NativeF32 logistic(NativeF32 x) {
  const NativeF32 a = single::absolute(x);
  const single::Exponential e = single::exponential(-(a > 87 ? single::constant(87) : a));
  const NativeF32 power = single::power_of_two(e.n);
  NativeF32 y = multiply_add(power, e.p, power);
  y = a > 87 ? NativeF32{} : y;
  return (x < 0 ? y : single::constant(1)) / (1 + y);
}
LOCKSTEP_INLINE NativeF32 hyperbolic_tangent(NativeF32 x) {
  NativeF32 a = single::absolute(x);
  a = a > 10 ? single::constant(10) : a;
  const single::Exponential e = single::exponential(a + a);
  const NativeF32 power = single::power_of_two(e.n);
  const NativeF32 t = multiply_add(power, e.p, power - 1);
  return single::with_sign_of(t / (t + 2), x);
}

LOCKSTEP_INLINE NativeF64 logistic(NativeF64 x) { return function::sigmoid{}(x); }
LOCKSTEP_INLINE NativeF64 hyperbolic_tangent(NativeF64 x) { return function::tanh{}(x); }

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
