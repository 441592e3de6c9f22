// Pieces of which losses are made. Each can be differentiated any number of times.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// Sums x over all dimensions behind the first `kept`: (N, C, ...) with 2 kept dimensions becomes (N, C). A bf16 value
// is summed in f32. Throws Error where x has fewer dimensions.
Value sum_behind(Value x, int kept);
// Returns the larger of x and the number. The gradient of x is 0 where x is smaller.
Value floored_at(Value x, double floor);

}  // namespace lockstep
