// Reductions along the tree for every element type and operation, one step as comm/combine.h has it: f16 and bf16 round
// every sum, whole numbers wrap, so that where ranks and domains are cut changes no bit. Sums of f32 may be rounded to
// a narrower wire at every edge of the tree. Allocates nothing after a thread's first calls. Any thread.
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
  Wire wire = Wire::Exact;  // another one is for sums of f32 alone
  bool root = true;         // the result is the root's, which a narrow wire rounds too
};

// Each of `outs` = the operands reduced by those steps, n elements each; an out may be one of the operands, and holds
// operands[0] where there is no step. Throws Error for bytes, and for a narrow wire of anything but sums of f32.
void tree_reduce(const TreeReduction& reduction, std::span<const void* const> operands, std::int64_t n,
                 std::span<void* const> outs);

}  // namespace lockstep::parallel
