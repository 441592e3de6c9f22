// Element-wise functions on oneDNN in any layout, f32 and bf16: those that agree with the other kernels also about NaN,
// infinity and zero. ReLU and exp are missing, since oneDNN turns a NaN into 0 and infinity, and log, which is not 0 at
// 1.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::onednn {

std::optional<KernelOffer> unary(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> unary_gradient(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> binary(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::onednn
