// Max and average pooling on oneDNN in the channel blocking that is offered, f32 and bf16. The positions of maxima are
// oneDNN's workspace: those of the other kernels, in the same types. Forward max pooling is not offered, as
// oneDNN's drops NaNs.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

std::optional<KernelOffer> average_pool(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> average_pool_gradient(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> max_pool_gradient(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::kernels::onednn
