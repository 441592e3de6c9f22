// A loss: a mean over samples, and the total weight of these samples. Losses of ranks, shards and micro-batches of
// different sizes combine to sum(weight * mean) / sum(weight), the loss of the whole global batch; the gradient is that
// of this quotient.
#pragma once

#include "lockstep/graph/value.h"

namespace lockstep {

struct Loss {
  Value mean;
  Value weight = {};  // scalar; empty: the number of samples of the batch

  Loss() = default;
  Loss(Value loss, Value weight_sum = {}) : mean(loss), weight(weight_sum) {}  // NOLINT: any scalar Value is a loss
  operator Value() const { return mean; }                                      // NOLINT: and a loss is a Value
};

// How much samples and elements count in a loss; empty: each counts once. Weights are constants of the training, at
// least 0, of the loss's floating type. A loss is then sum(weight * loss) / sum(weight), and 0 where all weights are 0.
struct LossWeights {
  Value sample = {};  // (samples)
  Value mask = {};    // broadcasts to the elements of which the loss is a mean; where it is 0, the target may be NaN
};

}  // namespace lockstep
