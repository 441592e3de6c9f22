#include "tools/doctor/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::tools {
namespace {

// Milliseconds: until a pipe whose reader reads nothing is given up; until SIGKILL follows SIGTERM; between two looks.
constexpr int kWriteLimit = 30000, kEndLimit = 2000, kEndLook = 10;

struct Pipe {
  io::FileDescriptor reader, writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  check_call(pipe2(ends.data(), O_CLOEXEC) == 0, "doctor", "no pipe");
  return {io::FileDescriptor(ends[0]), io::FileDescriptor(ends[1])};
}

void unblock(const io::FileDescriptor& file) {
  check_call(fcntl(file.get(), F_SETFL, O_NONBLOCK) == 0, "doctor", "a pipe");
}

// Appends what has come; false: the other end is closed.
bool take(const io::FileDescriptor& file, std::string& text) {
  std::array<char, 4096> block{};
  while (true) {
    const ssize_t bytes = read(file.get(), block.data(), block.size());
    if (bytes > 0) text.append(block.data(), static_cast<std::size_t>(bytes));
    if (bytes == 0) return false;
    if (bytes < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

}  // namespace

Remote::Remote(const std::vector<std::string>& words) {
  std::vector<std::string> texts = words;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t actions;
  int code = posix_spawn_file_actions_init(&actions);
  check(code == 0, "doctor", "{} cannot be started: {}", words[0], std::strerror(code));
  const std::array<int, 3> ends{in.reader.get(), out.writer.get(), err.writer.get()};  // become 0, 1 and 2
  for (std::size_t i = 0; i < ends.size() && code == 0; ++i)
    code = posix_spawn_file_actions_adddup2(&actions, ends[i], static_cast<int>(i));
  if (code == 0) code = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) pid_ = -1;
  check(code == 0, "doctor", "{} cannot be started: {}", words[0], std::strerror(code));
  in_ = std::move(in.writer);
  out_ = std::move(out.reader);
  err_ = std::move(err.reader);
  unblock(in_);
  unblock(out_);
  unblock(err_);
}

Remote::Remote(Remote&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      closed_(other.closed_),
      status_(other.status_) {}

Remote::~Remote() {
  if (pid_ < 0 || status_) return;
  out_ = io::FileDescriptor();  // it must not wait for a reader
  err_ = io::FileDescriptor();
  kill(pid_, SIGTERM);
  for (int waited = 0; waited < kEndLimit; waited += kEndLook) {
    const pid_t gone = waitpid(pid_, nullptr, WNOHANG);
    if (gone == pid_ || (gone < 0 && errno == ECHILD)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(kEndLook));
  }
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Remote::wait(const std::vector<Remote*>& all, int milliseconds) {
  std::vector<pollfd> files;
  for (const Remote* remote : all) {
    if (!remote->closed_) files.push_back({.fd = remote->out_.get(), .events = POLLIN, .revents = 0});
  }
  if (!files.empty()) poll(files.data(), files.size(), milliseconds);
  for (Remote* remote : all) remote->read();
}

void Remote::read() {
  if (!closed_ && !take(out_, output_)) closed_ = true;
  take(err_, errors_);
}

std::optional<std::string> Remote::line() {
  const std::size_t end = output_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string text = output_.substr(0, end);
  output_.erase(0, end + 1);
  return text;
}

void Remote::write_line(const std::string& text) {
  const std::string line = text + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t bytes = write(in_.get(), line.data() + done, line.size() - done);
    if (bytes > 0) done += static_cast<std::size_t>(bytes);
    if (bytes >= 0 || errno == EINTR) continue;
    pollfd file{.fd = in_.get(), .events = POLLOUT, .revents = 0};
    // It has ended, which its stdout says, or reads nothing, and then says nothing in time.
    if (errno != EAGAIN || poll(&file, 1, kWriteLimit) <= 0) return;
  }
}

bool Remote::ended() { return closed_ && output_.find('\n') == std::string::npos; }

int Remote::status() {
  in_ = io::FileDescriptor();
  if (!status_) {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    take(err_, errors_);
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return *status_;
}

}  // namespace lockstep::tools
