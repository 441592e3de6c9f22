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

namespace lockstep::io {

// Not for concurrent use. Every failure is an Error with the path, the operation and the system's reason.
class FileReader {
 public:
  explicit FileReader(const std::filesystem::path& path);
  FileReader(const Folder& folder, const std::string& name);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  int descriptor() const { return file_.get(); }
  // Fills `out` with the next bytes; an Error if the file ends before.
  void read(std::span<std::byte> out);
  // The `bytes` bytes at `offset`, or what the file has of them; read() goes on where it was.
  std::vector<std::byte> peek(std::uint64_t offset, std::size_t bytes) const;

 private:
  void open_in(int folder, const std::string& name);

  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace lockstep::io
