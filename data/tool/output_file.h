// A file that gets its name when it is complete: bytes go to PATH.part, which the destructor removes unless commit()
// was called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::datasets {

// One thread. Throws Error with the path and the system's reason.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::uint8_t> bytes);
  void commit();  // flushes the file to the disk and renames it

 private:
  std::filesystem::path path_, part_;
  io::FileDescriptor file_;
  bool committed_ = false;
};

}  // namespace lockstep::datasets
