// Looks for numbers that are not finite.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep {

// The first index of n elements that is infinite or no number; -1: none. Whole numbers are finite.
std::int64_t first_nonfinite(const void* data, DType dtype, std::int64_t n);

}  // namespace lockstep
