// Passes over a graph with its gradient: neighbouring nodes that one kernel can do become one node. ReLU joins the
// batch norm, the residual addition, the convolution or the linear layer before it, and its gradient the batch norm's;
// at inference a batch norm joins the convolution before it, whose weights are folded once per set of weights. Then
// connected pointwise nodes become one.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/plan/gradient.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {

// What names a graph's values beside it; a pass makes it name those of the new graph.
struct GraphRoots {
  Traced& traced;
  std::vector<ParameterGradient>& gradients;
  int& forward_nodes;  // the gradient's nodes follow
};

// The graph with fused nodes, and batch norms folded into convolutions at inference if `fold`. Values that are read
// elsewhere, observed, or outputs stay values; nodes that nothing reads go.
std::unique_ptr<Graph> fuse_patterns(const Graph& graph, const GraphRoots& roots, bool fold);
std::unique_ptr<Graph> fuse_pointwise(const Graph& graph, const GraphRoots& roots);

}  // namespace lockstep::plan
