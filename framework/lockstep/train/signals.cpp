#include "lockstep/train/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/train/requests.h"

namespace lockstep::train {
namespace {

constexpr int kHandled[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
constexpr std::int64_t kSameSignal = 1'000'000'000;  // ns
std::atomic<std::int64_t> first_stop{0};             // ns; 0: none

std::int64_t now() {  // clock_gettime() may be called in a handler
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void on_signal(int signal) {
  if (signal == SIGUSR1) return request(kCheckpointAsked);
  request(kStopAsked);
  std::int64_t first = 0;
  if (first_stop.compare_exchange_strong(first, now())) return;
  if (now() - first < kSameSignal) return;
  ::signal(signal, SIG_DFL);
  raise(signal);  // delivered when this handler returns
}

}  // namespace

void handle_signals() {
  for (const int signal : kHandled) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    check(sigaction(signal, &action, nullptr) == 0, "signals", "sigaction: {}", std::strerror(errno));
  }
}

void leave_signals() {
  for (const int signal : kHandled) ::signal(signal, SIG_DFL);
}

}  // namespace lockstep::train
