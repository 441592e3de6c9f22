// The pass that saves memory after the gradient is written: values that backward reads and that are cheap to compute
// are not kept from forward to backward, but computed again. Norms: the output of a batch norm, with residual and ReLU,
// is computed again from x, the statistics and the residual. Blocks: of each Graph::Block only the values that nodes
// outside read are kept, and backward computes the others again (Chen et al., "Training deep nets with sublinear memory
// cost" (2016)). The bits do not change.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/plan/gradient.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {

enum class Recompute : std::uint8_t { None, Norms, Blocks };

// Returns the graph with copies of forward nodes before their first use in backward, which begins at node
// `forward_nodes`; changes `traced` and `gradients` to values of the new graph.
std::unique_ptr<Graph> recompute(const Graph& graph, int forward_nodes, Recompute what, Traced& traced,
                                 std::vector<ParameterGradient>& gradients);

}  // namespace lockstep::plan
