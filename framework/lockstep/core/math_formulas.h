// exp, log, tanh, the logistic function, erf, sin, cos and pow on vectors of doubles, from additions, products,
// quotients and fused multiply-adds alone: the same bits on every processor and in every library of the system. A
// source includes this after it has defined LOCKSTEP_INLINE and, for each of its vector types D, `D fused(D a, D b, D
// c)` = a * b + c rounded once. All here is local to the source: kernels/native/levels compiles it once per set of
// instructions.
//
// Full is for results in f64 (at most 2 units in the last place; tests/core/test_math.cpp), Short for results that are
// rounded to f32: relative error below 1e-8, no fused multiply-adds, arguments within the range of f32.
#pragma once

#include <cstdint>

#include "lockstep/core/formulas/number.h"

#include "lockstep/core/formulas/exponential.h"

#include "lockstep/core/formulas/angle.h"

#include "lockstep/core/formulas/power.h"
