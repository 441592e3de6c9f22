// The meaning of ssh's words when a host could not be logged in to, with the line that mends it. Pure.
#pragma once

#include <string>

#include "lockstep/preflight/finding.h"

namespace lockstep::preflight {

struct Login {
  std::string host;      // as ssh was given it
  int port = 0;          // 0: ssh's own
  std::string program;   // that was to be started there
  int status = 0;        // exit status; negative: it did not end in time
  std::string errors{};  // what came on stderr
};

// A red finding.
Finding login_failure(const Login& login);

}  // namespace lockstep::preflight
