// The checkpoints that earlier runs left in a run's folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/io/folder.h"

namespace lockstep::train {

// Moves checkpoints of earlier runs to checkpoints.1 and so on: all of them in a new run; in a resumed run, those of
// later steps and of other runs than `run`. Call it on rank 0, after all checks of the new run have passed.
void set_checkpoints_aside(const io::Folder& output, std::optional<std::int64_t> resumed_step, const std::string& run);

}  // namespace lockstep::train
