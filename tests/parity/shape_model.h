// Functions with constants, comparisons, and ops that move elements, for the models of single ops.
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/graph/graph.h"

namespace lockstep::parity {

bool is_shape_op(const nlohmann::json& request);
// Applies the request's op to x, and to y where the op takes two values. Indices are the batch's "index", whose shape
// the request tells.
Value apply_shape_op(const nlohmann::json& request, Value x, Value y);

}  // namespace lockstep::parity
