#include "tools/supervisor/descendants.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::supervisor {
namespace {

TEST(Descendants, AChildIsOneUntilItHasEnded) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto is_found = [&] { return std::ranges::count(descendants(), child) == 1; };
  EXPECT_TRUE(is_found());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_found());
}

}  // namespace
}  // namespace lockstep::supervisor
