// A named tensor that outlives the step: what a module declares and a ParameterStore holds. Identity is the address, so
// a module called twice, and tied weights, share one parameter.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/core/random.h"
#include "lockstep/graph/type.h"

namespace lockstep {

// Fills logical elements (row-major) of a tensor of that shape. Values are drawn in f64 and rounded once, so f32 and
// f64 runs start from the same numbers; the stream is keyed by (seed, full name), so they do not depend on rank or
// order.
using Initializer = std::function<void(const Shape& shape, std::span<double> values, RandomStream& random)>;

enum class Role : std::uint8_t {
  Weight,
  Bias,
  Norm,    // scale and shift of a normalisation
  Buffer,  // state without gradient: running statistics, counters
};

struct Parameter {
  Shape shape;
  Initializer initialize;
  Role role = Role::Weight;
  bool trainable = true;    // false: frozen, no gradient is computed
  bool is_integer = false;  // i64 instead of the model's floating type (counters)
};

struct NamedParameter {
  std::string name;  // full path: "layer1.0.conv1.weight"
  Parameter* parameter;
};

}  // namespace lockstep
