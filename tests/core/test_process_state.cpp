#include "lockstep/host/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(ProcessState, OfThisProcessIsKnown) {
  const host::ProcessState mine = host::process_state(getpid());
  EXPECT_FALSE(mine.is_gone());
  EXPECT_FALSE(mine.is_stopped());
  EXPECT_GT(mine.start, 0);
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
