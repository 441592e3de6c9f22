#include "lockstep/io/atomic_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".lockstep-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kWriteBlock = std::size_t{16} << 20;  // bytes per write()

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Returns ".lockstep-<host>.<process>.<count>.tmp", which is unique among living writers of a shared directory.
std::string temporary_name() {
  static std::atomic<int> count{0};
  return fmt::format("{}{}.{}.{}{}", kPrefix, host(), ::getpid(), count++, kSuffix);
}

bool from_this_host(std::string_view name) {
  const std::string mine = fmt::format("{}{}.", kPrefix, host());
  return name.starts_with(mine);
}

}  // namespace

AtomicFile::AtomicFile(const Folder& folder, std::string name, const AtomicFileOptions& options)
    : folder_(folder), name_(std::move(name)), options_(options) {
  refuse_other_than_file();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  // Tries another name if a dead process with the same id left a file, or remove_abandoned() ran between open and lock.
  for (int tries = 0; tries < 100; ++tries) {
    temporary_ = temporary_name();
    file_ = FileDescriptor(::openat(folder_.descriptor(), temporary_.c_str(), kFlags, 0666));
    const int code = errno;
    if (!file_.open() && code == EEXIST) continue;
    if (!file_.open()) fail_system(code, fmt::format("create temporary file {}", temporary_));
    // If the file system has no locks, remove_abandoned() gets none either and keeps the file.
    ::flock(file_.get(), LOCK_EX | LOCK_NB);
    struct stat status {};
    if (::fstat(file_.get(), &status) == 0 && status.st_nlink > 0) return;
  }
  fail_system(EEXIST, "create temporary file");
}

// The rename of commit() would put a file in the place of a device, a pipe or a link.
void AtomicFile::refuse_other_than_file() const {
  struct stat status {};
  if (::fstatat(folder_.descriptor(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISREG(status.st_mode)) return;
  fail(options_.site, "{} is {}, expected a regular file to replace, or a name that is free",
       (folder_.path() / name_).string(),
       S_ISLNK(status.st_mode)   ? "a symbolic link"
       : S_ISDIR(status.st_mode) ? "a folder"
                                 : "a device, pipe or socket");
}

AtomicFile::~AtomicFile() {
  if (!renamed_) ::unlinkat(folder_.descriptor(), temporary_.c_str(), 0);
}

void AtomicFile::fail_system(int code, std::string_view operation) const {
  fail(options_.site, "{}: {}: {}", (folder_.path() / name_).string(), operation,
       std::generic_category().message(code));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  const std::uint64_t middle = options_.bytes / 2;
  if (written_ <= middle && middle < written_ + bytes.size()) {
    const std::size_t before = middle - written_;
    append(bytes.first(before));
    fault_point("checkpoint.write", options_.step);
    bytes = bytes.subspan(before);
  }
  append(bytes);
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kWriteBlock));
    const int code = n == 0 ? EIO : errno;
    if (n < 0 && code == EINTR) continue;
    if (n <= 0) fail_system(code, "write to temporary file");
    written_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::overwrite(std::span<const std::byte> bytes) {
  check(bytes.size() <= written_, options_.site, "{}: overwrite() of {} bytes, but only {} are written",
        (folder_.path() / name_).string(), bytes.size(), written_);
  write_at(0, bytes);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  for (auto at = static_cast<off_t>(offset); !bytes.empty();) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kWriteBlock), at);
    const int code = n == 0 ? EIO : errno;
    if (n < 0 && code == EINTR) continue;
    if (n <= 0) fail_system(code, "write to temporary file");
    at += n;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) fail_system(errno, "fsync of temporary file");
  fault_point("checkpoint.rename", options_.step);
  if (::renameat(folder_.descriptor(), temporary_.c_str(), folder_.descriptor(), name_.c_str()) != 0)
    fail_system(errno, "rename of temporary file");
  renamed_ = true;
  if (file_.close() != 0) fail_system(errno, "close");
  folder_.flush();
}

Folder folder_of(const fs::path& path, std::string_view site) {
  check(path.has_filename(), site, "'{}' is no file name, expected the path of a file", path.string());
  try {
    return Folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
  } catch (const Error& error) {
    fail(site, "{}: create temporary file: {}", path.string(), error.what());
  }
}

void replace_file(const Folder& folder, const std::string& name, std::span<const std::byte> bytes,
                  std::string_view site) {
  AtomicFile file(folder, name, {.bytes = bytes.size(), .site = std::string(site)});
  file.write(bytes);
  file.commit();
}

void replace_file(const Folder& folder, const std::string& name, std::string_view text, std::string_view site) {
  replace_file(folder, name, std::as_bytes(std::span(text)), site);
}

void replace_file(const fs::path& path, std::span<const std::byte> bytes, std::string_view site) {
  replace_file(folder_of(path, site), path.filename().string(), bytes, site);
}

void replace_file(const fs::path& path, std::string_view text, std::string_view site) {
  replace_file(path, std::as_bytes(std::span(text)), site);
}

void remove_abandoned(const Folder& directory) {
  const int at = directory.descriptor();
  for (const std::string& name : directory.names()) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    // A file that cannot be opened or removed now stays until the next call. O_RDWR, though nothing is written: NFS
    // makes an exclusive flock() a lock of the server, which it gives only to a file that is open for writing.
    const FileDescriptor file(::openat(at, name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!file.open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime);
    if (!from_this_host(name) && age < std::chrono::hours(1)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(at, name.c_str(), 0);
  }
}

}  // namespace lockstep::io
