// --autotune: rank 0 measures the offers for every node of the nominal training plan that it has not met on this
// processor before, all ranks take its choices. Choices are kept in a file, by processor, threads, op and shapes. Bits
// depend on the choices, so they must be equal on all ranks; they are, because rank 0 sends them.
#pragma once

#include <filesystem>
#include <functional>

#include "lockstep/comm/communicator.h"
#include "lockstep/kernels/choice.h"

namespace lockstep::train {

// $XDG_CACHE_HOME/lockstep/kernels.json, or under ~/.cache; empty where there is no home.
std::filesystem::path autotune_cache();

struct Autotuned {
  kernels::KernelChooser choose;
  std::uint64_t hash;  // of the choices: bits depend on them
};

// Collective. `compile` is called on rank 0 and compiles the plan, discarding it, with the chooser that measures. The
// chooser that comes back answers from the choices, and for what was not measured with the first offer. A cache that
// cannot be read or written is a warning in the log, not an error.
Autotuned autotune(const comm::Communicator& comm, const std::filesystem::path& cache,
                   const std::function<void(const kernels::KernelChooser&)>& compile);

}  // namespace lockstep::train
