// The gradient of a training step: appends the backward nodes (ops/gradient.h) and returns the gradient of each
// parameter. It works on the ops of the model as written, before fusion.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep::plan {

struct ParameterGradient {
  // Null: `value` is a scalar of a sparse table (ops/table.h), whose node hands the gradient's rows to the table's
  // store.
  const Parameter* parameter;
  Value value;  // the gradient of sum(weight * mean); the update divides by the global weight
};

// Returns the gradient of loss.mean * loss.weight with respect to every trainable parameter and table on which the loss
// depends, in the order in which backward finishes them. `batch`, the number of samples, is the weight of a loss
// without one.
std::vector<ParameterGradient> append_gradient(Graph& graph, const Loss& loss, std::int64_t batch);

}  // namespace lockstep::plan
