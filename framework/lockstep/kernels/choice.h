// How one of several offers for a node is chosen: by default the first, which the kernels' static rules put there; with
// autotuning the one that was fastest when it was measured on this processor.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels {

// The index of the offer to take; there are at least two.
using KernelChooser = std::function<std::size_t(const KernelRequest&, std::span<const KernelOffer>)>;

// Whether it is worth a measurement. Not reorders, whose layouts are no part of the key; and not batch norms: a value
// that is recomputed in backward must come from the same set of kernels as in forward.
bool is_measured(const KernelRequest& request);

// What a choice depends on: the op, its attributes, the types of its inputs and outputs, the options.
std::string choice_key(const KernelRequest& request);

// Runs every offer on memory of its own and returns the index of the fastest: the least of several times, and only by a
// clear margin another than the first. Uses the calling process's threads as a training step does.
std::size_t measure_fastest(const KernelRequest& request, std::span<const KernelOffer> offers);

}  // namespace lockstep::kernels
