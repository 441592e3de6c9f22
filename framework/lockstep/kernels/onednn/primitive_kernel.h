// A Kernel that runs one oneDNN primitive: its memory objects are made once, and pointed at the plan's buffers before a
// run. oneDNN's scratch memory is the kernel's workspace. The engine and stream are the process's, and never destroyed.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep::onednn {

dnnl::engine& engine();
dnnl::stream& stream();
const dnnl::primitive_attr& attributes();  // scratch memory is the caller's

// Input or output `index` of a node is the primitive's argument `argument` (DNNL_ARG_...).
struct Binding {
  int argument;
  std::size_t index;
  bool is_output;
  dnnl::memory::desc descriptor;
};

// An offer to run the primitive; nullopt if it is one of oneDNN's reference implementations, which are far slower than
// the generic kernels, or one of its layouts has no Layout. An input whose descriptor is f32 or bf16 where the request
// is not is asked for in the descriptor's type.
std::optional<KernelOffer> primitive_offer(const KernelRequest& request, const dnnl::primitive_desc_base& primitive,
                                           std::vector<Binding> bindings);

}  // namespace lockstep::onednn
