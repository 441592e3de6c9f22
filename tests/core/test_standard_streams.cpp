#include "lockstep/core/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

// The result of `work` in a child process, whose descriptors are its own.
template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, NoFileGetsTheNumberOfOneThatWasClosed) {
  EXPECT_EQ(in_child([] {
              for (const int file : {0, 1, 2}) close(file);
              open_standard_streams();
              return open("/dev/zero", O_RDONLY) > 2 && write(1, "x", 1) == 1 && write(2, "x", 1) == 1 ? 0 : 1;
            }),
            0);
}

TEST(StandardStreams, OneThatIsOpenStaysAsItIs) {
  EXPECT_EQ(in_child([] {
              close(0);
              close(1);
              open_standard_streams();
              char buffer = 0;
              return read(0, &buffer, 1) == 0 && fcntl(2, F_GETFD) >= 0 && open("/dev/zero", O_RDONLY) > 2 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace lockstep
