// Search for numbers that are not finite.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep {

// Returns the index of the first of n elements that is infinite or NaN; -1: none. Integers are finite.
std::int64_t first_nonfinite(const void* data, DType dtype, std::int64_t n);

}  // namespace lockstep
