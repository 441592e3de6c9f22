#include "lockstep/checkpoint/directory_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <thread>

namespace lockstep::checkpoint {
namespace {

constexpr const char* kName = ".lock";

struct flock whole_file() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return whole;
}

// Returns 0 or the error number. Uses open file description locks: over NFS, flock() would not reach the server, and
// any close() of the same file in this process would release a classic fcntl lock.
int lock(int file) {
  struct flock whole = whole_file();
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
}

bool is_locked(int file) {
  struct flock whole = whole_file();
  return ::fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

bool held_by_another(int code) { return code == EAGAIN || code == EACCES; }

std::string owner_of(int file) {
  std::array<char, 512> text{};
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  const std::string_view found(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return found.empty() ? "another job" : std::string(found.substr(0, found.find('\n')));
}

std::string myself() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on host {}, since {:%Y-%m-%d %H:%M:%S} UTC\n", ::getpid(), host.data(),
                     fmt::gmtime(std::time(nullptr)));
}

}  // namespace

std::string lock_holder(const std::filesystem::path& directory) {
  const io::FileDescriptor file(::open((directory / kName).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.open() && is_locked(file.get()) ? owner_of(file.get()) : "";
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, std::chrono::milliseconds grace)
    : DirectoryLock(std::make_shared<const io::Folder>(directory), grace) {}

DirectoryLock::DirectoryLock(std::shared_ptr<const io::Folder> folder, std::chrono::milliseconds grace)
    : folder_(std::move(folder)), file_(folder_->open_file(kName, io::FileUse::ReadWrite, "output")) {
  const std::string path = (folder_->path() / kName).string();
  const auto deadline = std::chrono::steady_clock::now() + grace;
  int code = lock(file_.get());
  while (held_by_another(code) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    code = lock(file_.get());
  }
  if (held_by_another(code))
    throw FolderInUse(fmt::format("[output] '{}' is in use by {}; wait until that job ends, or pass another --output",
                                  folder_->path().string(), owner_of(file_.get())));
  if (code != 0) {
    warning_ = fmt::format("{}: the folder cannot be locked: {}; a second job with this --output would not be noticed",
                           path, std::generic_category().message(code));
    return;
  }
  const std::string text = myself();
  const bool written = ::ftruncate(file_.get(), 0) == 0 &&
                       ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) warning_ = fmt::format("{}: write: {}", path, std::generic_category().message(errno));
}

bool DirectoryLock::in_place() const { return folder_->holds(kName, file_.get()); }

}  // namespace lockstep::checkpoint
