#include "tools/supervisor/descendants.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "lockstep/io/file_descriptor.h"
#include "tools/supervisor/proc_file.h"

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
  const io::FileDescriptor stat(open(("/proc/" + std::to_string(child) + "/stat").c_str(), O_RDONLY));
  ASSERT_TRUE(stat.open());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_found());
  EXPECT_EQ(proc_file(stat.get()), "") << "it ended between open() and read()";
}

TEST(Descendants, ProcessesThatEndMeanwhileAreNoError) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int i = 0; i < 500; ++i) {
      const pid_t brief = fork();
      if (brief == 0) _exit(0);
      waitpid(brief, nullptr, 0);
    }
    _exit(0);
  }
  while (waitpid(child, nullptr, WNOHANG) == 0) EXPECT_NO_THROW(descendants());
}

TEST(Descendants, ThatDoNotEndAreSaid) {
  EXPECT_EQ(EndedDescendants{.ended = 3}.problem(), "");
  const std::string problem = EndedDescendants{.ended = 3, .left = {11, 12}}.problem();
  EXPECT_NE(problem.find("SIGKILL does not end: 11, 12;"), std::string::npos) << problem;
}

}  // namespace
}  // namespace lockstep::supervisor
