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
#include "lockstep/train/guard/untrusted_error.h"
#include "lockstep/train/prepare/guards.h"
#include "lockstep/train/run/guard_main.h"

namespace lockstep::comm {
namespace {

// So that whoever writes to it waits for a reader.
void fill_pipe(std::array<int, 2>& ends) {
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string block(4096, '.');
  while (write(ends[1], block.data(), block.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
}

// The status of wait() of a process that does `work`, which ends it.
template <class Work>
int status_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 6000 && (ended = waitpid(child, &status, WNOHANG)) == 0; ++i) usleep(10'000);
  if (ended != child) kill(child, SIGKILL);
  EXPECT_EQ(ended, child) << "it still waits for a reader";
  return status;
}

TEST(Abort, TextThatNobodyReadsKeepsNoProcessAlive) {
  std::array<int, 2> ends{};
  fill_pipe(ends);
  const int status = status_of_child([&] {
    dup2(ends[1], STDOUT_FILENO);
    std::fputs("never read", stdout);  // waits in stdio's buffer
    abort_job(kExitStalled);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitStalled) << status;
  for (const int file : ends) close(file);
}

void lose_trust() { throw train::UntrustedError("[guard] the loss is nan"); }

TEST(Abort, AnErrorIsSaidThoughNobodyReadsStdout) {
  std::array<int, 2> full{}, errors{};
  fill_pipe(full);
  ASSERT_EQ(pipe(errors.data()), 0);
  const int status = status_of_child([&] {
    dup2(full[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    std::fputs("never read", stdout);
    const train::MainGuard guard("program");
    []() noexcept { lose_trust(); }();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitUntrusted) << status;
  std::array<char, 256> text{};
  ASSERT_GT(read(errors[0], text.data(), text.size() - 1), 0);
  EXPECT_STREQ(text.data(), "program: [guard] the loss is nan\n");
  for (const int file : {full[0], full[1], errors[0], errors[1]}) close(file);
}

}  // namespace
}  // namespace lockstep::comm
