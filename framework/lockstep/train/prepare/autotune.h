// Implements --autotune: rank 0 measures the offers for each graph node of the nominal training plan, unless it has
// measured that node on this processor before; all ranks use its choices. A file keeps the choices by processor,
// threads, op and shapes. Bits depend on the choices, so rank 0 sends them to all ranks.
#pragma once

#include <filesystem>
#include <functional>

#include "lockstep/comm/communicator.h"
#include "lockstep/kernels/choice.h"

namespace lockstep::train {

// Returns $XDG_CACHE_HOME/lockstep/kernels.json, or the same under ~/.cache; empty if there is no home folder.
std::filesystem::path autotune_cache();

struct Autotuned {
  kernels::KernelChooser choose;
  std::uint64_t hash;  // hash of the choices, on which bits depend
};

// Measures the offers. Rank 0 calls `compile`, which compiles the plan with the measuring chooser and discards it. The
// returned chooser takes the choices, and the first offer for a node that was not measured. A cache that cannot be read
// or written is a warning in the log, not an error. Collective.
Autotuned autotune(const comm::Communicator& comm, const std::filesystem::path& cache,
                   const std::function<void(const kernels::KernelChooser&)>& compile);

}  // namespace lockstep::train
