// The options of a model's compilation.
#pragma once

#include <cstdint>

#include "lockstep/graph/graph.h"
#include "lockstep/kernels/options.h"
#include "lockstep/plan/recompute.h"

namespace lockstep::plan {

// Treatment of trainable parameters on which the loss does not depend: an Error that names them, or no gradient.
enum class Unused : std::uint8_t { Error, Ignore };

struct CompileOptions {
  // Compute products and convolutions in bf16, with f32 parameters; the activations between them are bf16 too.
  bool bf16 = false;
  bool fuse = true;
  // At inference, fold a batch norm into the convolution before it. This needs a second copy of the weights, so a model
  // in training does without it.
  bool fold = true;
  Recompute recompute = Recompute::Norms;
  kernels::KernelOptions kernels = {};
  kernels::KernelChooser choose = {};  // empty: by the kernels' static rules
  Unused unused = Unused::Error;
  Synchronisation synchronisation = {};  // the ranks over which nodes of training plans sum
};

}  // namespace lockstep::plan
