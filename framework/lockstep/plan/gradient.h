// The gradient of a training step: appends the backward nodes (ops/gradient.h) and says which value is each parameter's
// gradient. It comes before fusion, on the ops that the model was written with.
#pragma once

#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep::plan {

struct ParameterGradient {
  const Parameter* parameter;
  Value value;  // of sum(weight * mean): the division by the global weight is the update's
};

// The gradient of loss.mean * loss.weight with respect to every trainable parameter that the loss depends on, in the
// order in which backward finishes them. `batch` is the weight of a loss that names none: its number of samples.
std::vector<ParameterGradient> append_gradient(Graph& graph, const Loss& loss, std::int64_t batch);

}  // namespace lockstep::plan
