// Rounding of counts, in the kernels of this folder.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

// Returns the least multiple of `unit` that is at least n; n >= 0.
constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
// Returns the number of units of `unit` that n needs.
constexpr std::int64_t divided_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }

}  // namespace lockstep::kernels::native
