// Gradients beside those in buckets, such as the rows of sparse tables: StepUpdate drives them, adds their squares to
// those that clipping and guards look at, and lets them update with the decision about the step. One thread, the one
// that computes; alike on all ranks. Functions throw Error where communication fails.
#pragma once

#include "lockstep/parallel/control/step_state.h"

namespace lockstep::parallel {

class FurtherGradients {
 public:
  virtual ~FurtherGradients() = default;
  // The forward passes of the step's last shard are complete on this rank. With `squares`, squares() will be asked for.
  virtual void open(bool squares) = 0;
  virtual bool advance() = 0;                      // goes on without waiting; whether anything moved
  virtual bool is_reduced() const = 0;             // the sums of all ranks, and squares(), are complete
  virtual double squares() const = 0;              // of the sums, over all ranks
  virtual void update(const StepState& step) = 0;  // once per step, when decided and reduced
  virtual bool is_updated() const = 0;             // update() was called in this step
};

}  // namespace lockstep::parallel
