// A file that gets its name when it is whole: bytes go to PATH.part, which is removed unless commit() was called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace lockstep::datasets {

// One thread. Throws Error with the path and the system's reason.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::uint8_t> bytes);
  void commit();  // flushed to the disk, then renamed

 private:
  std::filesystem::path path_, part_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace lockstep::datasets
