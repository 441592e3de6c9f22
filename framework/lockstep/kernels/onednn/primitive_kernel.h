// A Kernel that runs one oneDNN primitive. Its memory objects are made once; before a run they are set to the plan's
// buffers. The workspace of the kernel is oneDNN's scratch memory. The process has one engine and one stream, which are
// never destroyed.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep::kernels::onednn {

dnnl::engine& engine();
dnnl::stream& stream();
// Scratch memory is the caller's; with a residual, the primitive adds to what it finds in its output.
dnnl::primitive_attr attributes(const Epilogue& epilogue = {});

// Input or output `index` of a node is the primitive's argument `argument` (DNNL_ARG_...).
struct Binding {
  int argument;
  std::size_t index;
  bool is_output;
  dnnl::memory::desc descriptor;
};

// An offer to run the primitive; nullopt if it is one of oneDNN's reference implementations, which are far slower than
// the generic kernels, or one of its layouts has no Layout. An input whose descriptor is f32 or bf16 where the request
// is not is requested in the descriptor's type. The epilogue's residual, the request's last input, is copied to output
// 0 before the primitive runs, unless the plan computes in place. Its ReLU follows the primitive, in a pass of our own:
// oneDNN's makes a NaN 0, which would hide that a training diverged.
std::optional<KernelOffer> primitive_offer(const KernelRequest& request, const dnnl::primitive_desc_base& primitive,
                                           std::vector<Binding> bindings, const Epilogue& epilogue = {});

}  // namespace lockstep::kernels::onednn
