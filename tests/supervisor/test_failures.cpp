#include <gtest/gtest.h>

#include "tools/supervisor/failure_reader.h"
#include "tools/supervisor/restart_policy.h"

namespace lockstep::supervisor {
namespace {

std::string failure_in(std::string_view text) {
  FailureReader whole, pieces;
  whole.read(text);
  for (const char c : text) pieces.read({&c, 1});
  EXPECT_EQ(whole.summary(), pieces.summary());
  return whole.summary();
}

TEST(FailureReader, MpirunsReports) {
  EXPECT_EQ(failure_in("mpirun noticed that process rank 1 with PID 12 on node node2 exited on signal 9 (Killed).\n"),
            "rank 1 on host node2: signal 9 (Killed)");
  EXPECT_EQ(failure_in("The first process to do so was:\n\n  Process name: [[16024,1],3]\n  Exit code:    76\n"),
            "rank 3: exit code 76");
  EXPECT_EQ(failure_in("  HNP daemon   : [[1,0],0] on node node1\n  Remote daemon: [[1,0],1] on node node2\n"),
            "host node2: connection lost");
  EXPECT_EQ(failure_in("step 5 of 10\n"), "");
}

TEST(FailureReader, ReportsOfOpenMpi5AreBrokenIntoLines) {
  EXPECT_EQ(
      failure_in("prterun noticed that process rank 1 with PID 4481 on node node2 exited on\nsignal 9 (Killed).\n"),
      "rank 1 on host node2: signal 9 (Killed)");
  EXPECT_EQ(
      failure_in("prterun noticed that process rank 0 with PID 4481 on node\na-long-name-of-a-host exited on signal\n"
                 "11 (Segmentation fault).\n"),
      "rank 0 on host a-long-name-of-a-host: signal 11 (Segmentation fault)");
  EXPECT_EQ(failure_in("prterun noticed that process rank 0 with PID 4481 on node a exited on signal 11 (Segmentation\n"
                       "fault).\n"),
            "rank 0 on host a: signal 11 (Segmentation fault)");
  EXPECT_EQ(failure_in("   Process name: [prterun-node1-4582@1,3]\n   Exit code:    76\n"), "rank 3: exit code 76");
}

TEST(FailureReader, HydrasReports) {
  const std::string head = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n";
  EXPECT_EQ(failure_in(head + "=   PID 77 RUNNING AT node2\n=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n"
                              "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"),
            "process 77 on host node2: Killed (signal 9)");
  EXPECT_EQ(failure_in(head + "=   RANK 3 PID 77 RUNNING AT node2\n=   EXIT CODE: 76\n"),
            "rank 3 on host node2: exit code 76");
  EXPECT_EQ(failure_in("=   EXIT CODE: 9\n"), "");
}

TEST(FailureReader, WhatAProgramSaidOfItselfCountsMore) {
  EXPECT_EQ(failure_in("train_toy: rank 2 on host node2: [loader] record 7 is empty\n"
                       "  Process name: [[1,1],2]\n  Exit code:    1\n"),
            "rank 2 on host node2: [loader] record 7 is empty");
}

TEST(FailureReader, WhatAllRanksSayTogether) {
  EXPECT_EQ(failure_in("train_toy: [output] 'a' cannot be made a directory: Permission denied\n"),
            "[output] 'a' cannot be made a directory: Permission denied");
  EXPECT_EQ(failure_in("[node1:4711] PMIX ERROR\nwarning: [checkpoint] slow\n"), "");
}

using End = RestartPolicy::End;
using std::chrono::milliseconds;

TEST(RestartPolicy, SomeEndsAreFinal) {
  RestartPolicy policy({.max_restarts = 3});
  for (const int code : {0, kExitCommandLine, kExitStopped, kExitUntrusted, 126, 127})
    EXPECT_FALSE(policy.after({.code = code}).restart) << code;
  EXPECT_FALSE(policy.after({.code = 137, .asked = true}).restart);
  EXPECT_TRUE(policy.after({.code = kExitStalled}).restart);
  EXPECT_TRUE(policy.after({.code = kExitStopped, .for_host = true}).restart);
  EXPECT_TRUE(RestartPolicy({.restart_on_stop = true}).after({.code = kExitStopped}).restart);
}

TEST(RestartPolicy, PausesGrowUntilACheckpointIsNewer) {
  RestartPolicy policy({.max_restarts = 3, .backoff = milliseconds(200)});
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 4}).pause, milliseconds(200));
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 4}).pause, milliseconds(400));
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 4}).pause, milliseconds(800));
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 6}).pause, milliseconds(200));
  EXPECT_TRUE(policy.after({.code = 1, .newest_step = 6}).restart);
  EXPECT_TRUE(policy.after({.code = 1, .newest_step = 2}).restart);  // an older one is no progress
  EXPECT_FALSE(policy.after({.code = 1, .newest_step = 6}).restart);
}

TEST(RestartPolicy, CheckpointsOfAnotherJobAreNoProgress) {
  RestartPolicy policy({.max_restarts = 2}, 4);
  EXPECT_TRUE(policy.after({.code = 1, .newest_step = 5, .own = false}).restart);
  EXPECT_TRUE(policy.after({.code = 1, .newest_step = 6, .own = false}).restart);
  EXPECT_FALSE(policy.after({.code = 1, .newest_step = 7, .own = false}).restart);
  EXPECT_FALSE(policy.after({.code = 1, .newest_step = 7}).restart) << "nor later";
  EXPECT_TRUE(policy.after({.code = 1, .newest_step = 8}).restart);
}

TEST(RestartPolicy, TwoErrorsAlikeSoonAfterTheStartAreFinal) {
  const End error{.code = 1, .error = "[output] no space"};
  const auto gives_up = [&](const End& between, const End& then) {
    RestartPolicy policy({.max_restarts = 100});
    EXPECT_TRUE(policy.after(error).restart);
    if (between.code != 0) {
      EXPECT_TRUE(policy.after(between).restart);
    }
    return !policy.after(then).restart;
  };
  EXPECT_TRUE(gives_up({}, error));
  EXPECT_FALSE(gives_up({}, {.code = 3, .error = error.error}));
  EXPECT_FALSE(gives_up({}, {.code = 1, .error = "[data] gone"}));
  EXPECT_FALSE(gives_up({}, {.code = 1, .newest_step = 4, .error = error.error}));
  EXPECT_FALSE(gives_up({.code = 137}, error));  // not in a row
  EXPECT_FALSE(gives_up({.code = 137}, {.code = 137}));
}

TEST(RestartPolicy, SaysWhetherThereIsANewerCheckpoint) {
  RestartPolicy policy({.max_restarts = 3}, 4);
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 4}).reason, "restart 1 of 3 without a newer checkpoint");
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 6}).reason, "restart from step 6");
  EXPECT_EQ(policy.after({.code = 1, .newest_step = 6}).reason, "restart 2 of 3 without a newer checkpoint");
}

TEST(RestartPolicy, ForHostsItWaitsAsLongAsItTakes) {
  RestartPolicy policy({.max_restarts = 1, .backoff = milliseconds(200)});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(policy.after({.code = 1, .no_hosts = true}).restart);
  EXPECT_EQ(policy.after({.code = 1, .no_hosts = true}).pause, milliseconds(6400));
  EXPECT_EQ(policy.after({.code = 1}).pause, milliseconds(200));
  EXPECT_FALSE(policy.after({.code = 1}).restart);
}

TEST(RestartPolicy, NoPauseIsLongerThanFiveMinutes) {
  RestartPolicy policy({.max_restarts = 1000});
  milliseconds last{0};
  for (int i = 0; i < 100; ++i) last = policy.after({.code = 1}).pause;
  EXPECT_EQ(last, std::chrono::minutes(5));
}

}  // namespace
}  // namespace lockstep::supervisor
