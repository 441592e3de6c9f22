#include "lockstep/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".lockstep-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kBlock = std::size_t{16} << 20;  // bytes per write()

[[noreturn]] void fail_system(const fs::path& path, int code, std::string_view operation) {
  fail("checkpoint", "{}: {}: {}", path.string(), operation, std::generic_category().message(code));
}

fs::path directory_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// ".lockstep-<host>.<process>.<count>.tmp": unique among living writers of a shared directory.
std::string temporary_name() {
  static std::atomic<int> count{0};
  return fmt::format("{}{}.{}.{}{}", kPrefix, host(), ::getpid(), count++, kSuffix);
}

// A temporary file of this process, unlinked unless it was renamed. Its lock says that the writer lives.
class Temporary {
 public:
  Temporary(const Folder& folder, const std::string& target)
      : folder_(folder), target_(target), path_(folder.path() / target) {
    // Another name when a dead process with this number left one, or remove_abandoned() came between open and lock.
    for (int tries = 0; tries < 100; ++tries) {
      name_ = temporary_name();
      file_ = FileDescriptor(
          ::openat(folder.descriptor(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      const int code = errno;
      if (!file_.open() && code == EEXIST) continue;
      if (!file_.open()) fail_system(path_, code, fmt::format("create temporary file {}", name_));
      ::flock(file_.get(), LOCK_EX | LOCK_NB);  // without locks in the file system nobody gets one to remove it either
      struct stat status {};
      if (::fstat(file_.get(), &status) == 0 && status.st_nlink > 0) return;
    }
    fail_system(path_, EEXIST, "create temporary file");
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlinkat(folder_.descriptor(), name_.c_str(), 0);
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kBlock));
      const int code = n == 0 ? EIO : errno;
      if (n < 0 && code == EINTR) continue;
      if (n <= 0) fail_system(path_, code, "write to temporary file");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void flush() {
    if (::fsync(file_.get()) != 0) fail_system(path_, errno, "fsync of temporary file");
  }

  void rename() {
    if (::renameat(folder_.descriptor(), name_.c_str(), folder_.descriptor(), target_.c_str()) != 0)
      fail_system(path_, errno, "rename of temporary file");
    renamed_ = true;
    if (file_.close() != 0) fail_system(path_, errno, "close");
  }

 private:
  const Folder& folder_;  // both the caller's
  const std::string& target_;
  fs::path path_;
  std::string name_;
  FileDescriptor file_;
  bool renamed_ = false;
};

bool from_this_host(std::string_view name) {
  const std::string mine = fmt::format("{}{}.", kPrefix, host());
  return name.starts_with(mine);
}

}  // namespace

void replace_file(const Folder& folder, const std::string& name, std::span<const std::byte> bytes, std::int64_t step) {
  Temporary temporary(folder, name);
  temporary.write(bytes.first(bytes.size() / 2));
  fault_point("checkpoint.write", step);
  temporary.write(bytes.subspan(bytes.size() / 2));
  temporary.flush();
  fault_point("checkpoint.rename", step);
  temporary.rename();
  folder.flush();
}

void replace_file(const fs::path& path, std::span<const std::byte> bytes, std::int64_t step) {
  check(path.has_filename(), "checkpoint", "{}: expected the name of a file", path.string());
  const fs::path directory = directory_of(path);
  std::optional<Folder> folder;
  try {
    folder.emplace(directory);
  } catch (const Error& error) {
    fail("checkpoint", "{}: create temporary file: {}", path.string(), error.what());
  }
  replace_file(*folder, path.filename().string(), bytes, step);
}

void remove_abandoned(const Folder& directory) {
  const int at = directory.descriptor();
  for (const std::string& name : directory.names()) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    // Tidying up: what cannot be read or removed now stays for the next time.
    const FileDescriptor file(::openat(at, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!file.open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime);
    if (!from_this_host(name) && age < std::chrono::hours(1)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(at, name.c_str(), 0);
  }
}

}  // namespace lockstep::checkpoint
