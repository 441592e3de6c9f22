// Reductions along the tree for every element type and operation; comm/combine.h defines one step. f16 and bf16 are
// rounded after every sum and integers wrap, so the bits do not depend on the grouping into ranks and domains. Sums of
// f32 may be rounded to a narrower wire at every edge of the tree. Allocates only in a thread's first calls. Any
// thread.
#pragma once

#include <span>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep::parallel {

struct TreeReduction {
  comm::Element element;
  comm::ReduceOp op = comm::ReduceOp::Sum;
  std::span<const TreeMerge> merges = {};
  bool threads = false;     // may use OpenMP
  Wire wire = Wire::Exact;  // other wires are for sums of f32 alone
  bool root = true;         // the result is the root, which a narrow wire rounds too
};

// Writes to each of `outs` the operands reduced by these steps, n elements each; without steps that is operands[0]. An
// out may be one of the operands. Throws Error for Element::Byte, and for a narrow wire with another reduction than a
// sum of f32.
void tree_reduce(const TreeReduction& reduction, std::span<const void* const> operands, std::int64_t n,
                 std::span<void* const> outs);

}  // namespace lockstep::parallel
