// The pass that lets the readers of a batch norm in training normalise what they read. The norm computes
// its statistics alone; so the normalised image is neither written nor computed again in backward. The bits do not
// change. It takes a norm with a ReLU and without residual whose result only convolutions and their gradients by the
// weight read (ops/convolution_of_norm.h), and the norm of a shortcut that the norm at the end of a residual block adds
// (ops/batch_norm2d_sum.h).
#pragma once

#include <memory>

#include "lockstep/kernels/options.h"
#include "lockstep/plan/fusion.h"

namespace lockstep::plan {

// Returns the graph with such norms taken into their readers, after fuse_patterns(). A norm keeps its result where that
// saves no bytes: another op reads the result, the caller keeps it, or the kernel that the rules prefer for one of the
// readers cannot normalise.
std::unique_ptr<Graph> fuse_norms(const Graph& graph, const GraphRoots& roots, const kernels::KernelOptions& options);

}  // namespace lockstep::plan
