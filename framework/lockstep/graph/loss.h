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

}  // namespace lockstep
