// Finds the last layers of a model, its heads, in the graph of a trace. A layer is a module that has parameters itself
// ("fc" of "fc.weight"). It is last if no other layer's parameters are applied to values that depend on it on the
// way to the prediction; a model with several outputs has several last layers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/plan/trace.h"

namespace lockstep::plan {

// Returns the names of the parameters and buffers of the last layers, in the order of `parameters`. `root` is the
// prediction, or the loss, of the graph of a trace of the model.
std::vector<std::string> last_layers(const std::vector<NamedParameter>& parameters, Value root);
// Traces the model function without gradient, for inputs of these types, and returns the same. The root is the
// prediction, or the loss of a model without one; throws Error where there is neither.
std::vector<std::string> last_layers(const std::vector<NamedParameter>& parameters, const ModelFunction& function,
                                     const std::map<std::string, Type>& inputs);

}  // namespace lockstep::plan
