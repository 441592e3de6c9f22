// The part that the tests of the launcher share.
#pragma once

#include <functional>
#include <string>

#include "lockstep/core/error.h"
#include "tests/messages.h"
#include "tools/launcher/secret.h"

namespace lockstep::launcher {

inline const Secret& secret() {
  static const Secret value("0123456789abcdef", "test");
  return value;
}

}  // namespace lockstep::launcher
