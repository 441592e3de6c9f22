// Chooses one of several offers for a node. By default that is the first offer, by the static rules of the kernels;
// with autotuning it is the offer that was fastest when measured on this processor.
#pragma once

#include <span>
#include <string>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels {

// Whether autotuning measures the request. It does not measure reorders, as their layouts are no part of the key, nor
// batch norms, as backward must recompute a value with the set of kernels that computed it in forward.
bool is_measured(const KernelRequest& request);

// The key of a choice: the op, its attributes, the types of its inputs and outputs, the options.
std::string choice_key(const KernelRequest& request);

// Runs the offers on memory of their own and returns the index of the fastest one, by the least of several times. An
// offer beats the first only by a clear margin. Generic kernels, which are plain loops, are left out of work that takes
// the first offer long. Uses the threads of the calling process as a training step does.
std::size_t measure_fastest(const KernelRequest& request, std::span<const KernelOffer> offers);

}  // namespace lockstep::kernels
