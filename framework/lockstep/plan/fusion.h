// Passes over a graph with its gradient that join neighbouring nodes into one node with one kernel. ReLU joins the
// batch norm, the residual addition, the convolution or the linear layer before it; the gradient of ReLU joins that of
// the batch norm. At inference a batch norm joins the convolution before it, whose weights are folded once per set of
// weights. At last, connected pointwise nodes become one node.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/graph/graph.h"
#include "lockstep/plan/gradient.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {

// References to values of a graph from outside the graph; a pass changes them to values of the new graph.
struct GraphRoots {
  Traced& traced;
  std::vector<ParameterGradient>& gradients;
  int& forward_nodes;  // number of nodes before those of the gradient
};

// Returns the graph with fused nodes, and at inference with batch norms folded into convolutions if `fold`. A value
// that another node reads, that is observed or that is an output remains; a node without readers is removed.
std::unique_ptr<Graph> fuse_patterns(const Graph& graph, const GraphRoots& roots, bool fold);
std::unique_ptr<Graph> fuse_pointwise(const Graph& graph, const GraphRoots& roots);

}  // namespace lockstep::plan
