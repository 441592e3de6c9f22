// The part that the tests of the launcher share.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <functional>
#include <string>

#include "lockstep/core/error.h"
#include "tests/messages.h"
#include "tools/launcher/secret.h"

// Skips the test where processes that lose their parent do not come to the launcher.
#define LOCKSTEP_SKIP_WITHOUT_SUBREAPER()                                                                    \
  do {                                                                                                       \
    int set = 0;                                                                                             \
    if (::prctl(PR_GET_CHILD_SUBREAPER, &set, 0, 0, 0) != 0)                                                 \
      GTEST_SKIP() << "there is no PR_SET_CHILD_SUBREAPER here, as under QEMU: the launcher starts nothing"; \
  } while (false)

namespace lockstep::launcher {

inline const Secret& secret() {
  static const Secret value("0123456789abcdef", "test");
  return value;
}

}  // namespace lockstep::launcher
