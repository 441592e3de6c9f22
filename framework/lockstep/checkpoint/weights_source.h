// The weights that a user names: a checkpoint, a file of weights alone, or the folder of a run. Any thread may call the
// function.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::checkpoint {

struct WeightsSource {
  std::filesystem::path file{};
  std::string metadata{};  // of a checkpoint, the text of a JSON object; empty: the file has weights alone
};

// Finds the file, verifies the hash of one that Lockstep wrote, and reads its metadata. Of a run's folder, or its
// folder of checkpoints, takes the newest checkpoint that is whole. Throws Error at site "weights" with the path for a
// folder without one, and for a file that is damaged or neither a checkpoint nor HDF5.
WeightsSource find_weights(const std::filesystem::path& named);

}  // namespace lockstep::checkpoint
