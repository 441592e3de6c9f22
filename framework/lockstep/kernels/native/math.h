// The functions of core/math.h on arrays, at the chosen level of instructions, with the same bits.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

// y[i] = exp(x[i]); y may be x. On the calling thread.
void exp_all(std::int64_t n, const double* x, double* y);

}  // namespace lockstep::kernels::native
