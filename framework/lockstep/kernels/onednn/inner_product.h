// linear and its gradients on oneDNN's inner product, and matmul, f32 and bf16 with f32 weight gradients and biases.
// Activations are plain; weights blocked, in one layout for all directions in f32. No empty values.
#pragma once

#include <span>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

std::vector<KernelOffer> linear_forward(const KernelRequest& request, std::span<const Layout> offered);
std::vector<KernelOffer> linear_backward_data(const KernelRequest& request, std::span<const Layout> offered);
std::vector<KernelOffer> linear_backward_weights(const KernelRequest& request, std::span<const Layout> offered);
std::vector<KernelOffer> matmul(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::kernels::onednn
