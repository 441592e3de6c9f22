// How often each op of the library can be differentiated. Each op has a row; tests/ops checks every row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

enum class Derivatives : std::uint8_t {
  None,   // it has no gradient
  First,  // its gradient has no gradient of its own: gradient() of a gradient throws Error with the op's remedy
  Any,    // its gradient is made of ops that can be differentiated again
};

struct OpDerivatives {
  std::string_view op;
  Derivatives derivatives;
  std::string_view remedy = {};  // the advice in the error about an op without a gradient that a model can contain
};

std::span<const OpDerivatives> op_derivatives();  // sorted by name

}  // namespace lockstep
