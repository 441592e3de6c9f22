#include "tools/supervisor/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

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

std::optional<ProcStat> proc_stat(pid_t pid) {
  const std::string text = proc_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_ends = text.rfind(')');  // the name may hold anything
  if (name_ends == text.npos) return std::nullopt;
  ProcStat stat;
  std::istringstream(text.substr(name_ends + 1)) >> stat.state >> stat.parent;
  return stat;
}

}  // namespace lockstep::supervisor
