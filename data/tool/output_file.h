// A file that gets its name when it is complete (io/atomic_file.h): several processes may write the same one, and each
// has a temporary file of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "lockstep/io/atomic_file.h"
#include "lockstep/io/folder.h"

namespace lockstep::datasets {

// One thread. Throws Error with the path and the system's reason.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);

  void write(std::span<const std::uint8_t> bytes);
  void commit();  // flushes the file to the disk and renames it

 private:
  io::Folder folder_;
  io::AtomicFile file_;
};

}  // namespace lockstep::datasets
