// One step of a reduction, for every element type: integers wrap, f16 and bf16 are combined as f32 and rounded. Minimum
// and maximum return the left operand if neither is smaller.
#pragma once

#include <type_traits>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

template <ReduceOp op, class T>
T combined(T a, T b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(combined<op>(static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (op == ReduceOp::Min) {
    return b < a ? b : a;
  } else if constexpr (op == ReduceOp::Max) {
    return a < b ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    // Computes with unsigned types not narrower than int: neither overflow nor the promotion of u16 is undefined then.
    using Unsigned = std::make_unsigned_t<T>;
    using Wide = std::common_type_t<Unsigned, unsigned>;
    const auto x = static_cast<Wide>(static_cast<Unsigned>(a)), y = static_cast<Wide>(static_cast<Unsigned>(b));
    return static_cast<T>(op == ReduceOp::Sum ? x + y : x * y);
  } else {
    return op == ReduceOp::Sum ? a + b : a * b;
  }
}

}  // namespace lockstep::comm
