#include "lockstep/core/prompt_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <string>

namespace lockstep {
namespace {

// Keeps the SIGPIPE of a write from this thread.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~NoSigpipe() {
    const int code = errno;
    const timespec now{};
    if (!was_pending_) {
      while (sigtimedwait(&sigpipe_, nullptr, &now) < 0 && errno == EINTR) continue;
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = code;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t sigpipe_, before_;
  bool was_pending_ = false;
};

// Not of a regular file: writing to it waits for no reader, and a second opening would write from the file's begin.
int open_again(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || S_ISREG(status.st_mode)) return -1;
  return open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

PromptWriter::PromptWriter(int file) : file_(file), own_(open_again(file)) {}

PromptWriter::~PromptWriter() {
  if (own_ >= 0) close(own_);
}

bool PromptWriter::write(std::string_view& text) const {
  const NoSigpipe no_sigpipe;
  const std::size_t bytes = std::min(text.size(), std::size_t{PIPE_BUF});
  ssize_t written = send(file_, text.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (written < 0 && errno == ENOTSOCK) {
    // A pipe that is ready has room for so many bytes, unless another process takes it between the two calls.
    pollfd ready{file_, POLLOUT, 0};
    if (own_ < 0 && poll(&ready, 1, 0) == 0) return true;
    written = ::write(own_ >= 0 ? own_ : file_, text.data(), bytes);
  }
  if (written < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  text.remove_prefix(static_cast<std::size_t>(written));
  return true;
}

}  // namespace lockstep
