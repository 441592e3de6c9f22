// Reorders and casts of f32 and bf16 values by oneDNN, from the layout that is offered. Padding of the destination
// becomes zero.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

std::optional<KernelOffer> reorder_values(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> cast_values(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::kernels::onednn
