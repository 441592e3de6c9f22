// Rotary positions in plain loops (ops/rotary.h), for f32, f64 and bf16, whose elements are turned in f32. Nothing
// allocates in a run.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/ops/rotary.h"

namespace lockstep::kernels::generic {

struct RotaryShape {
  std::int64_t samples, steps, heads, width;  // of x
  RotaryOp::Attributes op;
};

// cos and sin of the angles of one position: [d / 2] of each.
template <class T>
void rotary_angles(const RotaryShape& shape, std::int64_t position, T* cosines);
// y = x turned; y may be x. angles [steps][d], or [samples][steps][d] if `by_sample`. Angle is float for bf16.
template <class T, class Angle>
void rotate(const RotaryShape& shape, const Angle* angles, bool by_sample, const T* x, T* y);

}  // namespace lockstep::kernels::generic
