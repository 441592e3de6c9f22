#include "tools/supervisor/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "lockstep/core/error.h"

namespace lockstep::supervisor {

Signals::Signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&wanted, number);
  struct sigaction hangup {};
  check_call(sigaction(SIGHUP, nullptr, &hangup) == 0, "run", "SIGHUP");
  if (hangup.sa_handler == SIG_IGN) sigdelset(&wanted, SIGHUP);
  check_call(sigprocmask(SIG_BLOCK, &wanted, &previous_) == 0, "run", "signals");
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  check_call(sigaction(SIGPIPE, &ignore, &pipe_) == 0, "run", "SIGPIPE");
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  check_call(sigaction(SIGCHLD, &plain, &child_) == 0, "run", "SIGCHLD");
  descriptor_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  check_call(descriptor_ >= 0, "run", "signalfd");
}

Signals::~Signals() {
  close(descriptor_);
  sigaction(SIGPIPE, &pipe_, nullptr);
  sigaction(SIGCHLD, &child_, nullptr);
  sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
  }
  return std::nullopt;
}

}  // namespace lockstep::supervisor
