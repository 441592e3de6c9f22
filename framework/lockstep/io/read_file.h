// Reading a regular file in blocks, by the length it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// Not for concurrent use. Every failure is an Error with the path, the operation and the system's reason.
class FileReader {
 public:
  explicit FileReader(const std::filesystem::path& path);
  FileReader(const Folder& folder, const std::string& name);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` with the next bytes; an Error if the file ends before.
  void read(std::span<std::byte> out);

 private:
  void open_in(int folder, const std::string& name);

  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

// A buffer for `bytes` of the file's contents; an Error where memory does not suffice.
std::vector<std::byte> allocate_for(std::uint64_t bytes, const std::string& path);

}  // namespace lockstep::checkpoint
