// The first pass over a traced graph, before its gradient is written: neighbouring nodes that one kernel can do become
// one node. ReLU joins the batch norm, the residual addition, the convolution or the linear layer before it; at
// inference a batch norm joins the convolution before it, whose weights are folded once per set of weights.
#pragma once

#include <memory>

#include "lockstep/graph/graph.h"
#include "lockstep/plan/trace.h"

namespace lockstep {

// The graph with fused nodes, and batch norms folded into convolutions at inference if `fold`; `traced` then names its
// values. Values that are read elsewhere, observed, or outputs stay values.
std::unique_ptr<Graph> fuse(const Graph& graph, Traced& traced, bool fold);

}  // namespace lockstep
