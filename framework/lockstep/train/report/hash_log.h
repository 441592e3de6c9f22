// OUTPUT/hashes.jsonl: after some updates, the XXH3-64 of every tensor of the training state, so that `lockstep
// compare` can tell at which step, and in which tensor, two runs part. A line is {"step": 12, "tensors":
// {"model/fc.weight": "0123456789abcdef", ...}}; step 0 is before the first update. For rank 0 alone, from one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/report/json_lines.h"
#include "lockstep/train/report/tensor_hash.h"

namespace lockstep::train {

std::filesystem::path hash_log_path(const std::filesystem::path& output);

class HashLog {
 public:
  // Every `every` updates; 0: never, but the file of an earlier run is moved aside or cut off all the same.
  HashLog(std::shared_ptr<const io::Folder> output, std::int64_t every, std::optional<std::int64_t> resumed_step);

  // Throws Error if this file of an earlier run cannot be gone on with. Changes nothing.
  static void check_file(const io::Folder& output);

  // A step that stands in the file already, from before the resumed one, is not due again.
  bool is_due(std::int64_t step) const { return every_ > 0 && step % every_ == 0 && step > last_; }
  void write(std::int64_t step, std::span<const TensorHash> hashes);
  // As JsonLines::follow().
  void follow(const std::shared_ptr<const io::Folder>& output) { lines_.follow(output); }

 private:
  std::int64_t every_, last_ = -1;
  JsonLines lines_;
};

struct HashRecord {
  std::int64_t step = 0;
  std::vector<TensorHash> tensors = {};  // in the order of the model
};

// Reads such a file, line by line.
class HashLogReader {
 public:
  explicit HashLogReader(const std::filesystem::path& path);
  // Empty at the end. A last line that a kill cut short counts as the end; any other that is no record, or whose step
  // does not follow, is an Error that names file and line.
  std::optional<HashRecord> next();

 private:
  std::string path_;
  std::ifstream in_;
  std::int64_t line_ = 0, step_ = -1;
};

}  // namespace lockstep::train
