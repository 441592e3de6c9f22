// The type of values in messages between ranks.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

// The format to which a value is rounded when it goes up an edge of the tree, or from the root to all ranks: a message
// carries this format. Sums are computed in f32. For f64 only Exact is allowed.
enum class Wire : std::uint8_t { Exact, BF16, F16 };

}  // namespace lockstep::parallel
