// The pass after the gradient is written: values that backward reads but that are cheap to compute again are not kept
// from forward to backward. Norms: what batch norm made, with residual and ReLU, comes again from x, the statistics and
// the residual, in a pass over memory. Blocks: of every block (Graph::Block) only what others read is kept; backward
// computes the rest again, as in Chen et al., "Training deep nets with sublinear memory cost" (2016). Values are the
// same bits either way.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/plan/gradient.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {

enum class Recompute : std::uint8_t { None, Norms, Blocks };

// The graph with copies of forward nodes before their first use in backward, which begins at node `forward_nodes`;
// `traced` and `gradients` then name its values.
std::unique_ptr<Graph> recompute(const Graph& graph, int forward_nodes, Recompute what, Traced& traced,
                                 std::vector<ParameterGradient>& gradients);

}  // namespace lockstep::plan
