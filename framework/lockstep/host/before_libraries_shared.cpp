// For a shared library: its code runs after the libraries that it needs were initialised.
#include <signal.h>

#include "lockstep/host/before_libraries.h"

namespace lockstep::host {

bool hangup_was_ignored() {
  struct sigaction now {};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace lockstep::host
