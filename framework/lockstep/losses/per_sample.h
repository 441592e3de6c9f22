// A loss with weights, counted per sample, so that it can stand beside other losses (plan::Traced::losses).
#pragma once

#include "lockstep/graph/loss.h"

namespace lockstep {

// Returns the weighted sum of the loss, mean * weight, divided by the number of samples, which is the first dimension
// of `field`, an input of the model. A mean over samples, exact at any number of ranks; `loss` itself where it has no
// weight. Throws Error where `field` is a scalar.
Loss per_sample(const Loss& loss, Value field);

}  // namespace lockstep
