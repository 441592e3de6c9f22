// A tensor that outlives the step: a module declares and owns it, a ParameterStore holds its values. Its address is its
// identity, so a module that is called twice, and tied weights, have one parameter.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/core/random.h"
#include "lockstep/graph/type.h"

namespace lockstep {

// Fills the elements, in row-major order, of a tensor of this shape. Values are f64 and are rounded once, so runs in
// f32 and f64 start from the same numbers. The random stream is keyed by (seed, full name), so the values do not depend
// on the rank or on the order of parameters.
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
  bool trainable = true;    // false: frozen; no gradient is computed
  bool is_integer = false;  // i64 (counters), not the floating type of the model
};

struct NamedParameter {
  std::string name;  // full path: "layer1.0.conv1.weight"
  Parameter* parameter;
};

}  // namespace lockstep
