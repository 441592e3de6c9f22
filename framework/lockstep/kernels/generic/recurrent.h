// The recurrence of an LSTM or GRU layer, forward and backward, on kernels/native. Threads divide directions and
// samples; a thread takes its samples through all steps without waiting for another. The weights are packed once per
// run. Each sum runs in one order, so the bits of a sample depend on its own values alone. Nothing allocates.
#pragma once

#include <cstdint>

#include "lockstep/ops/recurrent.h"

namespace lockstep::kernels::generic {

struct RecurrentShape {
  RecurrentOptions options;
  std::int64_t samples, steps, hidden;
  std::int64_t gates() const { return options.gates() * hidden; }
  std::int64_t wide() const { return options.directions * hidden; }  // a row of y
};

// As RecurrentOp has them; what is not there is null. gates may be product.
template <class T>
struct RecurrentForward {
  struct Direction {
    const T *product, *weight, *bias;
    T* gates;
  };
  Direction direction[2];
  const T *initial_h, *initial_c;
  T *y, *h, *c, *kept;
};

// As RecurrentGradientOp has them. by_hidden is by_product in an LSTM; by_product may be gates.
template <class T>
struct RecurrentBackward {
  struct Direction {
    const T *weight, *gates;
    T *by_product, *by_hidden, *before;
  };
  Direction direction[2];
  const T *y, *kept, *initial_h, *initial_c, *dy, *dh, *dc;
  T *by_initial_h, *by_initial_c;
};

// Elements of scratch memory.
std::int64_t recurrent_forward_scratch(const RecurrentShape& shape);
std::int64_t recurrent_backward_scratch(const RecurrentShape& shape);
template <class T>
void recurrent_forward(const RecurrentShape& shape, const RecurrentForward<T>& arrays, T* scratch);
template <class T>
void recurrent_backward(const RecurrentShape& shape, const RecurrentBackward<T>& arrays, T* scratch);

}  // namespace lockstep::kernels::generic
