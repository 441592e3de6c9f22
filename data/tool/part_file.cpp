#include "data/tool/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/core/error.h"

namespace lockstep::datasets {

io::FileDescriptor open_part(const std::filesystem::path& path, int flags) {
  constexpr std::string_view kNoFile = "is not a regular file, expected one or none; remove it";
  struct stat status {};
  // open() of a FIFO without a reader fails with a reason that names no FIFO, so the type is looked at before.
  if (lstat(path.c_str(), &status) == 0) check(S_ISREG(status.st_mode), path.string(), "{}", kNoFile);
  io::FileDescriptor file(open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  check_call(file.open(), path.string(), "cannot be opened for writing");
  const int found = fstat(file.get(), &status);
  check_call(found == 0, path.string(), "its type is unknown");
  check(S_ISREG(status.st_mode), path.string(), "{}", kNoFile);
  return file;
}

void write_all(const io::FileDescriptor& file, std::span<const std::uint8_t> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    check_call(written >= 0 || errno == EINTR, path.string(), "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written < 0 ? 0 : written));
  }
}

}  // namespace lockstep::datasets
