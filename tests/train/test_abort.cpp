// The end of a process that nobody listens to any more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "lockstep/comm/environment.h"
#include "lockstep/core/exit_status.h"

namespace lockstep::comm {
namespace {

TEST(Abort, TextThatNobodyReadsKeepsNoProcessAlive) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string block(4096, '.');
  while (write(ends[1], block.data(), block.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    std::fputs("never read", stdout);  // waits in stdio's buffer
    abort_job(kExitStalled);
  }
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 6000 && (ended = waitpid(child, &status, WNOHANG)) == 0; ++i) usleep(10'000);
  if (ended != child) kill(child, SIGKILL);
  ASSERT_EQ(ended, child) << "it still waits for a reader";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitStalled) << status;
  for (const int file : ends) close(file);
}

}  // namespace
}  // namespace lockstep::comm
