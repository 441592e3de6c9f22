// A file's contents as memory that the system fills from the file where it is touched: many files may be open that are
// larger than memory. Whoever maps a file has read it before, as a read error here ends the process.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::io {

class MappedFile {
 public:
  // The first `bytes` bytes of an open file, which may be closed afterwards. Throws Error with `path` where it cannot
  // be mapped.
  MappedFile(int file, std::size_t bytes, const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace lockstep::io
