#include "lockstep/train/monitor/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {
namespace {

// The kernel sends SIGXCPU at the soft limit of processor time, before it kills the process at the hard limit.
constexpr int kHandled[] = {SIGTERM, SIGINT, SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2};
constexpr std::int64_t kSameSignal = 1'000'000'000;  // ns
std::atomic<std::int64_t> first_stop{0};             // ns; 0: none

std::int64_t now() {  // in ns; clock_gettime() is async-signal-safe
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void on_stop_signal(int signal) {
  if (signal == SIGUSR1) return request(kCheckpointAsked);
  request(kStopAsked);
  if (signal == SIGXCPU) return;  // Linux repeats it with every second of processor time
  std::int64_t first = 0;
  if (first_stop.compare_exchange_strong(first, now())) return;
  if (now() - first < kSameSignal) return;
  ::signal(signal, SIG_DFL);
  raise(signal);  // delivered when this handler returns
}

bool ignored(int number) {
  struct sigaction now {};
  check_call(sigaction(number, nullptr, &now) == 0, "signals", "sigaction");
  return now.sa_handler == SIG_IGN;
}

}  // namespace

void handle_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : kHandled) {
    if (number == SIGHUP && ignored(number)) continue;
    struct sigaction action {};
    action.sa_handler = on_stop_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    check_call(sigaction(number, &action, nullptr) == 0, "signals", "sigaction");
    sigaddset(&handled, number);
  }
  const int error = pthread_sigmask(SIG_UNBLOCK, &handled, nullptr);
  check(error == 0, "signals", "pthread_sigmask: {}", std::strerror(error));
  // With SIGXFSZ ignored, a write beyond the limit of a file's size (ulimit -f) fails, as on a full disk.
  ::signal(SIGXFSZ, SIG_IGN);
  // If SIGCHLD is ignored, the system reaps children, and their exit status is lost (io/child_process.h).
  if (ignored(SIGCHLD)) ::signal(SIGCHLD, SIG_DFL);
}

void leave_signals() {
  for (const int number : kHandled) {
    if (!ignored(number)) ::signal(number, SIG_DFL);
  }
}

}  // namespace lockstep::train
