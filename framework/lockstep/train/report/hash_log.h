// Writes and reads OUTPUT/hashes.jsonl: after some updates, the XXH3-64 of every tensor of the training state. With it
// `lockstep compare` finds the first step, and the tensor, in which two runs differ. A line is {"step": 12, "tensors":
// {"model/fc.weight": "0123456789abcdef", ...}}; step 0 is before the first update. For rank 0, in one thread.
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
  // Writes a line every `every` updates; 0: never. Moves the file of an earlier run aside, or cuts it after the resumed
  // step, in any case.
  HashLog(std::shared_ptr<const io::Folder> output, std::int64_t every, std::optional<std::int64_t> resumed_step);

  // Throws Error if the file of an earlier run cannot be continued. Changes nothing.
  static void check_file(const io::Folder& output);

  // Returns whether a line is due after `step`; false for steps that the file already contains from before the resume.
  bool is_due(std::int64_t step) const { return every_ > 0 && step % every_ == 0 && step > last_; }
  void write(std::int64_t step, std::span<const TensorHash> hashes);
  // See JsonLines::follow().
  void follow(const std::shared_ptr<const io::Folder>& output) { lines_.follow(output); }

 private:
  std::int64_t every_, last_ = -1;
  JsonLines lines_;
};

struct HashRecord {
  std::int64_t step = 0;
  std::vector<TensorHash> tensors = {};  // in the order of the model
};

// Reads a file of hashes line by line.
class HashLogReader {
 public:
  explicit HashLogReader(const std::filesystem::path& path);
  // Returns the next record; empty at the end. A last line without a newline, which a kill may leave, counts as the
  // end. Throws Error with file and line if a line is no record or its step does not rise.
  std::optional<HashRecord> next();

 private:
  std::string path_;
  std::ifstream in_;
  std::int64_t line_ = 0, step_ = -1;
};

}  // namespace lockstep::train
