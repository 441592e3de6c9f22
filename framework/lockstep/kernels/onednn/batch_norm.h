// Batch normalisation in training and its gradient on oneDNN, without epilogues, in the channel blocking that is
// offered, if channels fill its blocks: f32, or bf16 with f32 per channel. Ranked below our own kernels, which fuse
// the operations after it and have sums in f64; so only autotuning or a preference for this set chooses it.
#pragma once

#include <optional>
#include <span>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels::onednn {

std::optional<KernelOffer> batch_norm(const KernelRequest& request, std::span<const Layout> offered);
std::optional<KernelOffer> batch_norm_gradient(const KernelRequest& request, std::span<const Layout> offered);

}  // namespace lockstep::kernels::onednn
