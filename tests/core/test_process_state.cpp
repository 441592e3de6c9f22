#include "lockstep/host/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace lockstep {
namespace {

TEST(ProcessState, OfThisProcessIsKnown) {
  const host::ProcessState mine = host::process_state(getpid());
  EXPECT_FALSE(mine.is_gone());
  EXPECT_FALSE(mine.is_stopped());
  EXPECT_GT(mine.start, 0);
}

TEST(ProcessState, AWaitingProcessSleeps) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) pause();
  }
  std::string state;
  for (int look = 0; look < 6000 && !state.starts_with("sleeps (state S"); ++look) {  // it may not wait yet
    usleep(10'000);
    state = host::process_state(child).str();
  }
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(state.starts_with("sleeps (state S")) << state;
}

TEST(ProcessState, AStoppedAndAnEndedProcessAreToldApart) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_NAME, "a) R\nb");  // a name may hold anything
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(host::process_state(child).is_stopped());
  EXPECT_TRUE(host::process_state(child).str().starts_with("is stopped (state T"));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(host::process_state(child).is_gone());
  EXPECT_EQ(host::process_state(child).str(), "is gone");
}

}  // namespace
}  // namespace lockstep
