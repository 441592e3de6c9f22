// Reads a regular file of known length in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::io {

// One thread at a time; peek() any thread. Throws Error at `site` with the path, the operation and the system's reason:
// Unavailable (core/error.h) if the file is there and the system does not open or read it.
class FileReader {
 public:
  explicit FileReader(const std::filesystem::path& path, std::string site = "checkpoint");
  FileReader(const Folder& folder, const std::string& name);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  int descriptor() const { return file_.get(); }
  // Fills `out` with the next bytes; throws Error if the file ends before `out` is full.
  void read(std::span<std::byte> out);
  // Returns the `bytes` bytes at `offset`, or fewer at the end of the file; does not move the position of read().
  std::vector<std::byte> peek(std::uint64_t offset, std::size_t bytes) const;

 private:
  void open_in(int folder, const std::string& name);

  std::string site_ = "checkpoint", path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace lockstep::io
