// softmax over the last dimension and its gradient on oneDNN, plain. f32: in bf16 oneDNN keeps its exponentials in bf16
// too.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::onednn {

std::optional<KernelOffer> softmax(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> softmax_gradient(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::onednn
