#include "lockstep/train/monitor/stack_signal.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/io/folder.h"

namespace lockstep::train {
namespace {

constexpr int kFrames = 64;
std::atomic<int> installed{0}, output{STDERR_FILENO};

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(output, text.data(), text.size());  // a failure cannot be reported
}

void on_stack_signal(int) {
  const int error = errno;
  std::array<void*, kFrames> frames;
  const int count = backtrace(frames.data(), kFrames);
  say("--- the stack of this process, requested by its watchdog (c++filt makes names readable)\n");
  backtrace_symbols_fd(frames.data(), count, output);
  say("--- end of the stack\n");
  errno = error;
}

}  // namespace

void answer_with_stack() {
  std::array<void*, 1> frame;
  backtrace(frame.data(), 1);  // the first call loads libraries and allocates, which a handler must not
  const int signal = SIGRTMIN + 5;
  struct sigaction action {};
  action.sa_handler = on_stack_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  check_call(sigaction(signal, &action, nullptr) == 0, "stack", "sigaction");
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, signal);
  const int error = pthread_sigmask(SIG_UNBLOCK, &asked, nullptr);
  check(error == 0, "stack", "pthread_sigmask: {}", std::strerror(error));
  installed = signal;
}

int stack_signal() { return installed; }

void write_stacks_to(const std::filesystem::path& file) {
  io::FileDescriptor opened = io::open_own_file(file, io::FileUse::Append, "stack");
  const int before = output.exchange(opened.release());
  if (before != STDERR_FILENO) close(before);
}

}  // namespace lockstep::train
