// The number of ranks that the remaining hosts of a job take.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/launch/host_list.h"

namespace lockstep::supervisor {

// Ranks for the hosts in `alive`, at most `wanted`, which all hosts took: as many as there are slots, or in proportion
// where slots are not said or fewer than `wanted`. std::nullopt, mpirun's own choice, stays that.
std::optional<std::int64_t> ranks_for(const launch::HostList& alive, const launch::HostList& all,
                                      std::optional<std::int64_t> wanted);

}  // namespace lockstep::supervisor
