// How much memory an action takes: the system's limit tells, in a child of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "tests/limits_memory.h"
#include "tests/messages.h"

// Skips the test where a limit of memory has no effect.
#define LOCKSTEP_SKIP_WITHOUT_LIMITS()                                                 \
  do {                                                                                 \
    if (!lockstep::limits_memory())                                                    \
      GTEST_SKIP() << "a limit of memory has no effect here: an emulator ignores it, " \
                      "and sanitizers map memory in their own ways";                   \
  } while (false)

namespace lockstep {

// Runs `action` in a child that may take `most` bytes of memory of its own beyond what it has; whether it returned.
// Mapped files do not count.
inline bool fits_in(std::size_t most, const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t data = 0;  // kB
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word == "VmData:") status >> data;
    }
    const rlimit limit{1024 * data + most, 1024 * data + most};
    if (data == 0 || ::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
    const std::string error = error_of(action);
    if (error != "no error") std::fprintf(stderr, "%s\n", error.c_str());
    ::_exit(error == "no error" ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace lockstep
