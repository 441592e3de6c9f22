// The three directions of conv2d on oneDNN's direct algorithm, each in the layouts that oneDNN likes best. f32, no
// empty values.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::onednn {

std::optional<KernelOffer> conv2d_forward(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> conv2d_backward_data(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> conv2d_backward_weights(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::onednn
