#include "tools/supervisor/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::supervisor {
namespace {

void say(const char* text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

// In the child of a process that may have other threads, whose locks stay taken there: by calls alone that need none.
// A failure here shows as status 127 with a line on stderr.
[[noreturn]] void become(char* const* words, char* const* environment, int errors, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  const bool ready = sigprocmask(SIG_SETMASK, &none, nullptr) == 0 && setsid() >= 0 &&
                     prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent;
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (ready && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && (errors < 0 || dup2(errors, STDERR_FILENO) >= 0) &&
      (output < 0 || dup2(output, STDOUT_FILENO) >= 0)) {
    signal(SIGPIPE, SIG_DFL);
    execvpe(words[0], words, environment);
  }
  const char* reason = strerrordesc_np(errno);
  say(words[0]);
  say(": ");
  say(reason == nullptr ? "unknown error" : reason);
  say("\n");
  _exit(127);
}

// Ours, with these variables in the place of those of the same names: "NAME=VALUE" each.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view text(*at);
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// As exec() takes them; they stay in `texts`.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

constexpr std::size_t kMostBytes = 65536;  // at once

struct Pipe {
  io::FileDescriptor reader, writer;
};

Pipe make_pipe(const std::string& name) {
  std::array<int, 2> ends{};
  check_call(pipe2(ends.data(), O_CLOEXEC) == 0, "run", "no pipe for {}", name);
  Pipe pipe{io::FileDescriptor(ends[0]), io::FileDescriptor(ends[1])};
  check_call(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, "run", "the pipe for {}", name);
  return pipe;
}

// At most some `most` bytes; a descriptor that is not open has none.
std::string read_some(const io::FileDescriptor& pipe, std::size_t most) {
  std::string text;
  if (!pipe.open()) return text;
  std::array<char, 4096> block{};
  while (text.size() < most) {
    const ssize_t bytes = ::read(pipe.get(), block.data(), block.size());
    if (bytes > 0) {
      text.append(block.data(), static_cast<std::size_t>(bytes));
    } else if (bytes == 0 || errno != EINTR) {
      break;  // nothing more now, or ever
    }
  }
  return text;
}

// A pipe holds 16 pages: 64 KiB, and 1 MiB where pages have 64 KiB.
std::string read_all(const io::FileDescriptor& pipe) {
  const int holds = pipe.open() ? fcntl(pipe.get(), F_GETPIPE_SZ) : 0;
  return read_some(pipe, std::max(kMostBytes, static_cast<std::size_t>(std::max(holds, 0))));
}

}  // namespace

Process::Process(const std::vector<std::string>& words, const ProcessOptions& options) {
  using Output = ProcessOptions::Output;
  std::vector<std::string> texts = words, variables = environment_with(options.variables);
  const std::vector<char*> arguments = pointers_to(texts), environment = pointers_to(variables);
  std::optional<Pipe> errors, output;
  if (options.catch_errors || options.output == Output::WithErrors) errors = make_pipe(words[0]);
  if (options.output == Output::Apart) output = make_pipe(words[0]);
  const int errors_file = errors ? errors->writer.get() : -1;
  const int stdout_file = output ? output->writer.get() : options.output == Output::WithErrors ? errors_file : -1;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), environment.data(), errors_file, stdout_file, parent);
  check_call(pid_ > 0, "run", "{} cannot be started", words[0]);
  if (errors) errors_ = std::move(errors->reader);
  if (output) output_ = std::move(output->reader);
}

Process::~Process() {
  if (status_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Process::signal(int number) const {
  // ESRCH cannot be: it is our child and not reaped.
  if (status_) return;
  check_call(kill(pid_, number) == 0, "run", "signal {} to {}", number, pid_);
  kill(pid_, SIGCONT);  // one that is stopped acts on no other signal before
}

std::string Process::read() { return read_some(errors_, kMostBytes); }

std::string Process::read_output() { return read_some(output_, kMostBytes); }

std::string Process::read_rest() { return read_all(errors_); }

std::string Process::read_rest_of_output() { return read_all(output_); }

std::optional<int> Process::ended() {
  if (status_) return status_;
  int status = 0;
  const pid_t reaped = waitpid(pid_, &status, WNOHANG);
  check_call(reaped >= 0 || errno == EINTR, "run", "waiting for process {}", pid_);
  if (reaped == pid_) status_ = status;
  return status_;
}

std::string describe_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exit code {}", WEXITSTATUS(wait_status));
  return fmt::format("signal {} ({})", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
}

int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace lockstep::supervisor
