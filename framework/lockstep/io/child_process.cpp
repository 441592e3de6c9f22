#include "lockstep/io/child_process.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

[[noreturn]] void fail_child(std::string_view operation) {
  fail("child process", "{}: {}", operation, std::generic_category().message(errno));
}

// The caller's handlers would act in the child as if it were the caller, and the caller's signal mask might keep a
// limit from ending the child. Signals that a launcher sends to the whole process group are for the caller: the child
// ignores them, and is killed when the caller ends.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Makes inherited shared memory read-only, so that a crash of the child cannot damage it.
void protect_shared_memory() {
  std::ifstream maps("/proc/self/maps");
  if (!maps) _exit(1);
  for (std::string line; std::getline(maps, line);) {  // "7f00-7f20 rw-s 0000 00:01 42 /dev/shm/name"
    std::uintptr_t begin = 0, end = 0;
    const char* last = line.data() + line.size();
    const auto first = std::from_chars(line.data(), last, begin, 16);
    if (first.ec != std::errc{} || first.ptr == last) continue;
    const auto second = std::from_chars(first.ptr + 1, last, end, 16);
    if (second.ec != std::errc{} || last - second.ptr < 5) continue;
    const bool writable = second.ptr[2] == 'w', shared = second.ptr[4] == 's';
    if (writable && shared && mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) != 0) _exit(1);
  }
}

std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

template <class Resource>  // glibc's enumeration of limits
void limit(Resource resource, rlim_t most) {
  rlimit now{};
  if (getrlimit(resource, &now) != 0) _exit(1);
  now.rlim_cur = std::min(most, now.rlim_max);
  if (setrlimit(resource, &now) != 0) _exit(1);
}

[[noreturn]] void run(const ChildLimits& limits, const std::function<void(int)>& work, int pipe, pid_t parent) {
  reset_signals();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int nowhere = open("/dev/null", O_WRONLY);  // takes what a C library prints when it finds its heap damaged
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(1);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.seconds));
  limit(RLIMIT_AS, mapped_bytes() + limits.memory);
  protect_shared_memory();
  try {
    work(pipe);
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

}  // namespace

ChildProcess::ChildProcess(const ChildLimits& limits, const std::function<void(int)>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_child("pipe");
  pipe_ = FileDescriptor(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) run(limits, work, theirs.get(), parent);
  if (pid_ < 0) fail_child("fork");
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  wait();
}

bool ChildProcess::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::read(pipe_.get(), out.data(), out.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_child("read from a pipe");
    if (n == 0) return false;
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

std::string ChildProcess::wait() {
  if (pid_ < 0) return "an unknown status (it was asked for before)";  // waitpid(-1) would take any child's
  int status = 0;
  pid_t ended = -1;
  do {
    ended = waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  pid_ = -1;
  if (ended < 0) return "an unknown status (another waitpid took it)";
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

void write_or_exit(int pipe, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(pipe, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace lockstep::io
