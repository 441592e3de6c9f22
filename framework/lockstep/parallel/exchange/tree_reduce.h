// Reductions along the tree for every element type and operation, one step as comm/combine.h has it: f16 and bf16 round
// every sum, whole numbers wrap, so that where ranks and domains are cut changes no bit.
#pragma once

#include <span>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep {

struct TreeReduction {
  comm::Element element;
  comm::ReduceOp op;
  std::span<const TreeMerge> merges = {};
  bool threads = false;  // may use OpenMP
};

// Each of `outs` = the operands reduced by those steps, n elements each; an out may be one of the operands, and holds
// operands[0] where there is no step. Throws Error for bytes.
void tree_reduce(const TreeReduction& reduction, std::span<const void* const> operands, std::int64_t n,
                 std::span<void* const> outs);

}  // namespace lockstep
