// A Kernel that runs one oneDNN primitive: its memory objects are made once, and pointed at the plan's buffers before a
// run. oneDNN's scratch memory is the kernel's workspace. The engine and stream are the process's, and never destroyed.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep::onednn {

dnnl::engine& engine();
dnnl::stream& stream();
// Scratch memory is the caller's; the epilogue becomes post-operations. oneDNN's ReLU makes a NaN 0.
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
// is not is asked for in the descriptor's type. A residual is the input that the primitive's sum finds in output 0: it
// is copied there unless the plan computes in place.
std::optional<KernelOffer> primitive_offer(const KernelRequest& request, const dnnl::primitive_desc_base& primitive,
                                           std::vector<Binding> bindings, int residual = -1);

}  // namespace lockstep::onednn
