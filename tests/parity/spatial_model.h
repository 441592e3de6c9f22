// Convolutions, pooling, enlarging and padding over one to three axes, as requests of the parity rows name them.
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/graph/graph.h"

namespace lockstep::parity {

bool is_spatial(const nlohmann::json& request);
// Applies the op that the request names, with its options: lists of one number per axis. `weight` and `bias` are empty
// where the op has none.
Value apply_spatial(const nlohmann::json& request, Value x, Value weight, Value bias);

}  // namespace lockstep::parity
