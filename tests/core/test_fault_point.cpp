// Each test asks for its faults in a child process: LOCKSTEP_FAULT is read once.
#include "lockstep/core/fault_point.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class FaultPoint : public testing::Test {
 protected:
  FaultPoint() { fs::create_directory(folder_); }
  ~FaultPoint() override { fs::remove_all(folder_); }

  // A process that runs `work` with these faults and exits with its result.
  template <class Work>
  static pid_t start(const std::string& faults, const Work& work) {
    const pid_t child = fork();
    if (child != 0) return child;
    setenv("LOCKSTEP_FAULT", faults.c_str(), 1);
    int status = 99;
    try {
      status = work();
    } catch (const Error&) {
      status = 98;
    }
    _exit(status);
  }
  static int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }
  template <class Work>
  static int exit_status(const std::string& faults, const Work& work) {
    const int status = end_of(start(faults, work));
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    return WEXITSTATUS(status);
  }

  fs::path folder_ = fs::temp_directory_path() / ("lockstep-fault-" + std::to_string(getpid()));
};

TEST_F(FaultPoint, FiresAtItsPointRankAndStepAlone) {
  EXPECT_EQ(exit_status("here:throw:rank=1:at=4",
                        [] {
                          fault_point("here", 4);  // no rank yet
                          set_fault_rank(1);
                          fault_point("there", 4);
                          fault_point("here", 3);
                          return 7;
                        }),
            7);
  const auto reaches = [] {
    set_fault_rank(1);
    fault_point("here", 4);
    return 7;
  };
  EXPECT_EQ(exit_status("here:throw:rank=1:at=4", reaches), 98);
  const int killed = end_of(start("there:throw here:kill:at=4", reaches));
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
  EXPECT_EQ(exit_status("here:burn", reaches), 98) << "no such action";
}

TEST_F(FaultPoint, OnceIsOnceForAllProcesses) {
  const std::string fault = "here:corrupt:once=" + (folder_ / "fired").string();
  const auto count = [] {
    int fired = 0;
    for (int i = 0; i < 3; ++i) fired += fault_wanted("here") ? 1 : 0;
    return fired;
  };
  EXPECT_EQ(exit_status(fault, count), 1);
  EXPECT_EQ(exit_status(fault, count), 0);
}

TEST_F(FaultPoint, UntilAFileIsThere) {
  const fs::path go = folder_ / "go", held = folder_ / "held";
  const std::string fault = "here:sleep=600:until=" + go.string();
  const pid_t child = start(fault, [&] {
    std::ofstream(held).flush();
    fault_point("here");
    return fs::exists(go) ? 7 : 8;
  });
  while (!fs::exists(held)) usleep(1000);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it is held";
  std::ofstream(go).flush();
  status = end_of(child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(exit_status("here:throw:until=" + go.string(),
                        [] {
                          fault_point("here");
                          return 7;
                        }),
            7)
      << "with the file there it does not fire";
}

}  // namespace
}  // namespace lockstep
