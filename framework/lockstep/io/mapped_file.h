// A file mapped into memory: the system reads pages when they are accessed, so open files may be larger than memory. A
// read error during an access kills the process; the caller should therefore have read the file once before.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::io {

class MappedFile {
 public:
  // Maps the first `bytes` bytes of the open file `file`, which may be closed afterwards. Throws Unavailable
  // (core/error.h) with `path` if the mapping fails.
  MappedFile(int file, std::size_t bytes, const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace lockstep::io
