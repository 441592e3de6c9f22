#include "tools/supervisor/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::supervisor {

std::string proc_file(const std::filesystem::path& file) {
  const io::FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened.open() ? proc_file(opened.get()) : "";
}

// Not by a stream: its iterators throw where the system says that the process is gone.
std::string proc_file(int file) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t n = ::read(file, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace lockstep::supervisor
