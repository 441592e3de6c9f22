// The functions of numbers for which kernels have code; all other functions are formulas of these. This header holds
// data alone, because kernels/native/tables.h includes it.
#pragma once

#include <cstdint>

namespace lockstep::pointwise {

enum class Code : std::uint8_t {
  Copy,      // a
  Add,       // a + b
  Subtract,  // a - b
  Multiply,  // a b
  Divide,    // a / b
  Maximum,   // the larger one; NaN if either is
  Minimum,
  Negate,        // -a
  Abs,           // |a|
  Sign,          // 1, 0 or -1; 0 of NaN
  Relu,          // a < 0 ? 0 : a
  Gate,          // a <= 0 ? 0 : b
  Select,        // a > 0 ? b : c
  Greater,       // a > b ? 1 : 0; 0 if either is NaN
  GreaterEqual,  // a >= b ? 1 : 0
  Equal,         // a == b ? 1 : 0
  Sqrt,
  Exp,
  Log,
  Tanh,
  Sigmoid,  // 1 / (1 + e^-a)
  Erf,
  Sin,
  Cos,
  Power,  // a^b
  kCount,
};
inline constexpr int kCodes = static_cast<int>(Code::kCount);

}  // namespace lockstep::pointwise
