#include "lockstep/io/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSite = "output";
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void fail_system(const fs::path& path, int code, std::string_view operation) {
  fail(kSite, "{}: {}: {}", path.string(), operation, std::generic_category().message(code));
}

bool is_absent(int code) { return code == ENOENT || code == ENOTDIR || code == ESTALE; }

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a named pipe";
    case S_IFDIR:
      return "a folder";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

int flags_of(FileUse use) {
  // O_NONBLOCK: does not wait for a pipe, which is refused below. It has no effect on regular files.
  constexpr int kCommon = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  switch (use) {
    case FileUse::ReadWrite:
      return kCommon | O_RDWR | O_CREAT;
    case FileUse::Append:
      return kCommon | O_WRONLY | O_CREAT | O_APPEND;
    case FileUse::Replace:  // emptied below, once the file is known to be a regular one
      return kCommon | O_WRONLY | O_CREAT;
    case FileUse::Read:
      break;
  }
  return kCommon | O_RDONLY;
}

FileDescriptor open_at(int folder, const std::string& name, const fs::path& shown, FileUse use, std::string_view site,
                       std::string_view expected = "a writable --output") {
  const auto refuse = [&](mode_t mode) {
    fail(site, "{} is {}, expected a regular file or none: remove it, or use another name", shown.string(),
         kind_of(mode));
  };
  struct stat status {};
  FileDescriptor file(::openat(folder, name.c_str(), flags_of(use), 0666));
  const int code = errno;
  if (!file.open()) {
    const bool found = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (found && !S_ISREG(status.st_mode)) refuse(status.st_mode);
    check(use != FileUse::Read, site, "cannot read {}: {}", shown.string(), std::generic_category().message(code));
    fail(site, "cannot write {}: {}; expected {}", shown.string(), std::generic_category().message(code), expected);
  }
  check_call(::fstat(file.get(), &status) == 0, site, "{}: stat", shown.string());
  if (!S_ISREG(status.st_mode)) refuse(status.st_mode);
  if (use == FileUse::Replace) check_call(::ftruncate(file.get(), 0) == 0, site, "cannot write {}", shown.string());
  return file;
}

}  // namespace

FileDescriptor open_own_file(const fs::path& path, FileUse use, std::string_view site, std::string_view expected) {
  return open_at(AT_FDCWD, path.string(), path, use, site, expected);
}

Folder::Folder(const fs::path& path) : path_(path), descriptor_(::open(path.c_str(), kFolderFlags)) {
  if (!descriptor_.open()) fail_system(path_, errno, "read directory");
}

std::optional<Folder> Folder::find(const fs::path& path) {
  FileDescriptor descriptor(::open(path.c_str(), kFolderFlags));
  if (!descriptor.open() && errno == ENOENT) return std::nullopt;
  if (!descriptor.open()) fail_system(path, errno, "read directory");
  return Folder(path, std::move(descriptor));
}

bool Folder::is_at(const fs::path& path) const {
  struct stat held {
  }, found{};
  if (::fstat(descriptor_.get(), &held) != 0) return !is_absent(errno);
  if (::stat(path.c_str(), &found) != 0) return !is_absent(errno);
  return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

Folder Folder::renamed() const {
  std::error_code error;
  const fs::path now = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor_.get()), error);
  FileDescriptor copy(::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.open()) fail_system(path_, errno, "hold directory");
  return {error ? path_ : now, std::move(copy)};
}

Folder Folder::make(const std::string& name) const {
  make_new(name);
  FileDescriptor inner(::openat(descriptor_.get(), name.c_str(), kFolderFlags));
  if (!inner.open()) fail_system(path_ / name, errno, "read directory");
  return {path_ / name, std::move(inner)};
}

std::optional<Folder> Folder::find_inside(const std::string& name) const {
  FileDescriptor inner(::openat(descriptor_.get(), name.c_str(), kFolderFlags));
  if (!inner.open() && errno == ENOENT) return std::nullopt;
  if (!inner.open()) fail_system(path_ / name, errno, "read directory");
  return Folder(path_ / name, std::move(inner));
}

bool Folder::make_new(const std::string& name) const {
  if (::mkdirat(descriptor_.get(), name.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail_system(path_ / name, errno, "make directory");
  return false;
}

FileDescriptor Folder::open_file(const std::string& name, FileUse use, std::string_view site) const {
  return open_at(descriptor_.get(), name, path_ / name, use, site);
}

bool Folder::has(const std::string& name) const {
  struct stat status {};
  return ::fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool Folder::holds(const std::string& name, int file) const {
  struct stat held {
  }, found{};
  if (::fstat(file, &held) != 0) return !is_absent(errno);
  if (::fstatat(descriptor_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return !is_absent(errno);
  return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

std::vector<std::string> Folder::names() const {
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  FileDescriptor again(::openat(descriptor_.get(), ".", kFolderFlags));  // has its own read position
  if (!again.open()) fail_system(path_, errno, "read directory");
  const std::unique_ptr<DIR, Close> stream(::fdopendir(again.get()));
  if (!stream) fail_system(path_, errno, "read directory");
  again.release();  // the stream closes it
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(stream.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) fail_system(path_, errno, "read directory");
  return names;
}

void Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    fail_system(path_ / name, errno, "remove");
}

void Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  if (::renameat(descriptor_.get(), name.c_str(), to.descriptor(), new_name.c_str()) != 0)
    fail_system(path_ / name, errno, "move to " + (to.path() / new_name).string());
}

void Folder::flush() const {
  // EINVAL: the file system cannot flush a directory; it orders renames itself.
  if (::fsync(descriptor_.get()) != 0 && errno != EINVAL) fail_system(path_, errno, "fsync of directory");
}

}  // namespace lockstep::io
