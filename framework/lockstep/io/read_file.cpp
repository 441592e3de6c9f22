#include "lockstep/io/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

constexpr std::size_t kReadBlock = std::size_t{16} << 20;  // bytes per read()

// Whether the name leads to no file, now and for every process.
bool leads_nowhere(int code) {
  return code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENXIO;  // ENXIO: a socket, or a missing device
}

[[noreturn]] void fail_read(const std::string& site, const std::string& path, int code, std::string_view operation) {
  const std::string text = formatted("[{}] {}: {}: {}", site, path, operation, std::generic_category().message(code));
  if (leads_nowhere(code)) throw Error(text);
  throw Unavailable(text);
}

// Opens the file; follows a symbolic link.
FileDescriptor open_to_read(int folder, const std::string& name, const std::string& site, const std::string& shown) {
  // O_NONBLOCK: does not wait for a pipe, which is refused below.
  FileDescriptor file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail_read(site, shown, errno, "open");
  return file;
}

}  // namespace

FileReader::FileReader(const std::filesystem::path& path, std::string site)
    : site_(std::move(site)), path_(path.string()) {
  open_in(AT_FDCWD, path_);
}

FileReader::FileReader(const Folder& folder, const std::string& name) : path_((folder.path() / name).string()) {
  open_in(folder.descriptor(), name);
}

void FileReader::open_in(int folder, const std::string& name) {
  file_ = open_to_read(folder, name, site_, path_);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_read(site_, path_, errno, "stat");
  check(S_ISREG(status.st_mode), site_, "{}: expected a regular file", path_);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void FileReader::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::read(file_.get(), out.data(), std::min(out.size(), kReadBlock));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(site_, path_, errno, "read");
    check(n > 0, site_, "{}: became shorter than {} bytes while it was read", path_, size_);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::vector<std::byte> FileReader::peek(std::uint64_t offset, std::size_t bytes) const {
  std::vector<std::byte> out(bytes);
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t n = ::pread(file_.get(), out.data() + have, bytes - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(site_, path_, errno, "read");
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

}  // namespace lockstep::io
