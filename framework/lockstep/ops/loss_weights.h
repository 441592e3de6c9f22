// The part that all losses share: the mean of elements that count differently (LossWeights), and its weight. Each
// function can be differentiated any number of times. `loss` is the name of the loss in errors. Throws Error where
// types do not fit.
#pragma once

#include <string_view>

#include "lockstep/graph/graph.h"
#include "lockstep/graph/loss.h"

namespace lockstep {

// Throws Error unless prediction and target have one shape, (samples, ...): a loss does not broadcast.
void require_equal_shapes(std::string_view loss, Value prediction, Value target);
// Returns the weights of a value of this type, (samples, ...): sample times mask, of a shape that broadcasts to that of
// the type. An empty Value: all elements count once. The type is a copy, as nodes that are appended move those of the
// graph.
Value element_weights(std::string_view loss, const LossWeights& weights, Type type);
// Returns a target where the mask is above 0, and 0 elsewhere, also for a NaN; the target itself for an empty mask.
Value masked(std::string_view loss, Value target, Value mask);
// Returns the mean of losses (samples, ...), one per element, with the sum of their weights. A bf16 value is summed in
// f32.
Loss weighted_mean(std::string_view loss, Value losses, const LossWeights& weights);

}  // namespace lockstep
