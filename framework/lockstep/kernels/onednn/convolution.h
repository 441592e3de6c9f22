// The three directions of a convolution over one to three axes on oneDNN: Winograd and direct kernels, each in the
// layouts that oneDNN chooses. f32, or bf16 with f32 weight gradients and biases; no empty values.
#pragma once

#include <span>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

std::vector<KernelOffer> convolution_forward(const KernelRequest& request, std::span<const Layout> offered);
std::vector<KernelOffer> convolution_backward_data(const KernelRequest& request, std::span<const Layout> offered);
std::vector<KernelOffer> convolution_backward_weights(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::kernels::onednn
