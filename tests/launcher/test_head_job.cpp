// The job on node 0, with a shell in the place of mpirun.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/launcher/helpers.h"
#include "tools/launcher/head_job.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

struct End {
  int status = 0;
  std::string reason{};
};

// Of a job that is asked to end before it has started a rank.
End end_of_asked(const std::string& mpirun, std::chrono::milliseconds stop_limit) {
  supervisor::Signals signals;
  HeadJob job({.words = {"/bin/sh", "-c", mpirun}, .stop_limit = stop_limit}, nullptr, signals,
              [](const std::string&) {});
  EXPECT_EQ(::kill(::getpid(), SIGTERM), 0);
  const int status = job.run();
  return {.status = status, .reason = job.reason()};
}

TEST(HeadJob, ARankThatStartsAfterTheRequestIsAskedToo) {
  LOCKSTEP_SKIP_WITHOUT_SUBREAPER();
  const End end = end_of_asked("sleep 0.5; OMPI_COMM_WORLD_RANK=0 sleep 300; exit 7", 200s);
  EXPECT_EQ(end.status, 7) << "the rank has ended, and mpirun by itself";
  EXPECT_EQ(end.reason, "signal 15 (Terminated) came to node 0");
}

TEST(HeadJob, RanksThatDoNotEndAreKilled) {
  LOCKSTEP_SKIP_WITHOUT_SUBREAPER();
  const End end = end_of_asked("(trap '' TERM; export OMPI_COMM_WORLD_RANK=0; exec sleep 300); exit 7", 1s);
  EXPECT_EQ(end.status, 143);
  EXPECT_EQ(end.reason, "signal 15 (Terminated) came to node 0; ranks did not end within 1 s and were killed");
}

TEST(JobStatus, IsMpirunsUnlessANodeWasLost) {
  constexpr int kStopped = 75 << 8, kCrashed = SIGSEGV;  // as wait() gives them
  EXPECT_EQ(job_status({.status = 0}), 0);
  EXPECT_EQ(job_status({.status = kStopped}), 75);
  EXPECT_EQ(job_status({.status = kStopped, .lost = true}), 75) << "its ranks had ended";
  EXPECT_EQ(job_status({.status = kCrashed}), 139);
  EXPECT_EQ(job_status({.status = kCrashed, .lost = true}), 205);
  EXPECT_EQ(job_status({.status = kCrashed, .told = true, .lost = true}), 205);
  EXPECT_EQ(job_status({.status = 0, .told = true, .lost = true}), 205);
  EXPECT_EQ(job_status({.status = 0, .told = true}), 1);
  EXPECT_EQ(job_status({.status = 0, .lost = true}), 205);
  EXPECT_EQ(job_status({.status = 0, .daemon_failed = true}), 205);
  EXPECT_EQ(job_status({.status = kStopped, .daemon_failed = true}), 75);
}

}  // namespace
}  // namespace lockstep::launcher
