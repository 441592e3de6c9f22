// An open POSIX file that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace lockstep::io {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  // Leaves it to the caller to close.
  int release() { return std::exchange(fd_, -1); }
  // Closes now; the result is close()'s, which on network file systems is where a write may fail.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

}  // namespace lockstep::io
