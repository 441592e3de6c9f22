// Reverse-mode differentiation while tracing: the functions append the nodes of gradients to the graph. These nodes can
// be differentiated again as far as their ops allow (ops/derivatives.h). An op without a gradient throws Error.
#pragma once

#include <span>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep {

// Returns dy/dx, of the shape of x; a y that is no scalar counts as the sum of its elements. For use inside a model: a
// gradient penalty, a force as the derivative of an energy. Throws Error where y does not depend on x.
Value gradient(Value y, Value x);
// The same for several x at once.
std::vector<Value> gradients(Value y, std::span<const Value> xs);

// The general form: returns for each target, a value of the graph, the gradient of the sum of `seed` * y, or an invalid
// Value where y does not depend on the target. `seed` has the type of y.
std::vector<Value> append_gradients(Value y, Value seed, std::span<const Value> targets);

}  // namespace lockstep
