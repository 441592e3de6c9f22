// Offers of Winograd's convolutions for the ops of ops/convolution.h; none where the rule prefers other kernels.
#pragma once

#include <optional>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::native {

std::optional<KernelOffer> winograd_forward(const KernelRequest& r);
std::optional<KernelOffer> winograd_forward_of_norm(const KernelRequest& r);
std::optional<KernelOffer> winograd_backward_data(const KernelRequest& r);
std::optional<KernelOffer> winograd_backward_weights(const KernelRequest& r);
std::optional<KernelOffer> winograd_backward_weights_of_norm(const KernelRequest& r);

}  // namespace lockstep::kernels::native
