// The beginning of NumPy's .npy files (numpy.lib.format). Any thread may call these functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/core/dtype.h"

namespace lockstep::data {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";  // the first bytes, before the version

// Returns what comes before the elements of an array, in row-major order and as they lie in memory: format version 1.0,
// filled up to a multiple of 64 bytes. Throws Error with `site` and the array's `name` for a type that NumPy lacks.
std::string npy_start(std::string_view site, std::string_view name, DType type, std::span<const std::int64_t> shape);

}  // namespace lockstep::data
