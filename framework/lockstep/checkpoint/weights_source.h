// The weights that a user names: a checkpoint, a file of weights alone, or the folder of a run. Any thread may call the
// function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::checkpoint {

struct WeightsSource {
  std::filesystem::path file{};
  std::string metadata{};  // of a checkpoint, the text of a JSON object; empty: the file has weights alone
};

enum class Pick : std::uint8_t { Newest, Best };

// Finds the file, verifies the hash of one that Lockstep wrote, and reads its metadata. Of a run's folder, or its
// folder of checkpoints, takes the newest checkpoint that is whole, or the best one by the run's rule --keep best:NAME.
// Throws Error with the path: at site "weights" for a folder without one, and for the best of a file or of a run
// without that rule; at site "checkpoint" for a file of Lockstep that is damaged, and for one that cannot be read. It
// does not look into other files: WeightsFile (weights.h) refuses those that are not HDF5.
WeightsSource find_weights(const std::filesystem::path& named, Pick pick = Pick::Newest);

}  // namespace lockstep::checkpoint
