// Reverse-mode differentiation, while tracing: appends the nodes of gradients to the graph. They are nodes as any
// other, so they can be differentiated again, as far as their ops allow (ops/derivatives.h).
#pragma once

#include <span>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep {

// dy/dx for a scalar y (of any shape: of the sum of its elements), to be used inside a model: a gradient penalty, a
// force as the derivative of an energy. Throws Error where y does not depend on x.
Value gradient(Value y, Value x);
std::vector<Value> gradients(Value y, std::span<const Value> xs);

// The general form: for each of `targets`, values of the graph, the gradient of `seed` * y; invalid where y does not
// depend on it. `seed` has y's type.
std::vector<Value> append_gradients(Value y, Value seed, std::span<const Value> targets);

}  // namespace lockstep
