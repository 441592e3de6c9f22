#include "tools/supervisor/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/checkpoint/file_descriptor.h"

namespace lockstep::supervisor {

// Not by a stream: its iterators throw where the system says that the process is gone.
std::string proc_file(const std::filesystem::path& file) {
  const checkpoint::FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> block{};
  while (opened.open()) {
    const ssize_t n = ::read(opened.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace lockstep::supervisor
