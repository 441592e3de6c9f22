#include "lockstep/io/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::io {

MappedFile::MappedFile(int file, std::size_t bytes, const std::string& path) {
  if (bytes == 0) return;  // mmap refuses an empty range
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (memory == MAP_FAILED) {
    const std::string reason = std::generic_category().message(errno);
    throw Unavailable(formatted("[checkpoint] {}: mmap of {} bytes: {}", path, bytes, reason));
  }
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace lockstep::io
