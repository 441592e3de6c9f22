// Two runs side by side: the first step at which their hash logs differ, and the tensors and elements at which their
// checkpoints do. Reads one checkpoint of each at a time. Throws Error for a path that is neither a run nor a
// checkpoint, and for a hash log that cannot be read.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/file.h"
#include "tools/tensor_difference.h"

namespace lockstep::tools {

// The files of a run that are there: its output folder, its folder of checkpoints, or one checkpoint file.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& path);

  std::filesystem::path path;
  bool is_file = false;
  std::optional<std::filesystem::path> hashes = {};
  std::map<std::int64_t, std::filesystem::path> checkpoints = {};  // by step
  std::shared_ptr<const checkpoint::Checkpoint> contents = {};     // of a single file, read to know its step
};

// A step that both runs have, and the tensors that differ in it.
struct HashDifference {
  std::int64_t step;
  std::int64_t tensors;                // of the step
  std::vector<std::string> different;  // names, in the order of the model
};
struct CheckpointDifference {
  std::int64_t step, right_step;  // other than `step` only where two files were given
  std::int64_t tensors;           // of the first
  std::vector<TensorDifference> different;
};

struct RunDifference {
  std::int64_t hashed_steps = 0, checkpoints = 0;  // the numbers that were compared
  std::optional<std::int64_t> last_equal = {};     // step before the first that differs, of those compared
  std::optional<HashDifference> hashes = {};       // the first
  std::optional<CheckpointDifference> saved = {};  // the first
  std::vector<std::string> causes = {};            // options and machines that differ, as far as checkpoints tell
  std::vector<std::string> unknown = {};           // parts that could not be compared, and why

  bool compared() const { return hashed_steps + checkpoints > 0; }
  bool equal() const { return !hashes && !saved; }
  std::int64_t first_step() const;  // unless equal
};

RunDifference difference(const RunFiles& left, const RunFiles& right);

}  // namespace lockstep::tools
