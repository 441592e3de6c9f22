// Conversion of numbers as files store them to the type of a field. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep::data {

// Converts `count` elements of `from` (F32, F64, I32, I64, U8) to `to` (the same types). Floating-point results are
// rounded; an integer result must be exact. Returns the index of the first element that `to` cannot hold (a fraction or
// NaN for an integer, a number outside the range), or -1. The memory of `in` and `out` does not overlap.
std::int64_t convert_array(DType from, const std::byte* in, DType to, std::byte* out, std::int64_t count);

}  // namespace lockstep::data
