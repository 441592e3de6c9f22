// The gradient of a training step: appends the backward nodes (ops/gradient.h) and returns the gradient of each
// parameter. It works on the ops of the model as written, before fusion.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep::plan {

struct ParameterGradient {
  const Parameter* parameter;
  Value value;  // the gradient of sum(weight * mean); the update divides by the global weight
};

// Returns the gradient of loss.mean * loss.weight with respect to every trainable parameter on which the loss depends,
// in the order in which backward finishes them. `batch`, the number of samples, is the weight of a loss without one.
std::vector<ParameterGradient> append_gradient(Graph& graph, const Loss& loss, std::int64_t batch);

}  // namespace lockstep::plan
