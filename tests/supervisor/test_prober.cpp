#include "tools/supervisor/prober.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace lockstep::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAmple{100'000};  // for what takes milliseconds, also where the machine is busy

// Waits for the end.
std::optional<int> end_of(Process& process) {
  std::optional<int> status;
  const auto until = std::chrono::steady_clock::now() + kAmple;
  while (!(status = process.ended()) && std::chrono::steady_clock::now() < until) usleep(10'000);
  return status;
}

// A shell takes the place of ssh: it reads the host as its script's name.
ProbeOptions through_shell(const char* script, milliseconds limit) {
  return {.agent = {"sh", "-c", script}, .job = "none", .limit = limit};
}

TEST(Prober, TellsHostsThatAnswerFromOthers) {
  const char* script =
      "case $0 in good) ;; slow) sleep 100 ;; *) echo first; echo \"$0: no route\" >&2; exit 255 ;; esac";
  const auto results = Prober(through_shell(script, kAmple), {"good", "bad"}).results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].reason, "");
  EXPECT_EQ(results[1].reason, "bad: no route");
  const auto late = Prober(through_shell(script, milliseconds(200)), {"slow", "slow"}).results();
  ASSERT_EQ(late.size(), 2U);
  for (const ProbeResult& result : late) EXPECT_EQ(result.reason, "no answer within 0.2 s");
}

TEST(Prober, NamesAStatusWhereNothingWasSaid) {
  EXPECT_EQ(Prober(through_shell("exit 3", kAmple), {"a"}).results()[0].reason, "exit code 3");
  EXPECT_EQ(Prober({.agent = {"/no/such/agent"}}, {"a"}).results()[0].reason,
            "/no/such/agent: No such file or directory");
}

TEST(Prober, EndsWhatIsLeftOfTheJob) {
  Process left({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine"}}});
  Process other({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine2"}}});
  // The way of ssh with the words after the host's name: it gives them to a shell, as one line.
  ProbeOptions options{.agent = {"sh", "-c", "shift 0; exec sh -c \"$*\""}, .job = "mine", .limit = kAmple};
  EXPECT_EQ(Prober(options, {"a"}).results()[0].reason, "");
  EXPECT_FALSE(left.ended()) << "nothing is ended on the supervisor's own machine";
  options.here = "another machine";
  EXPECT_EQ(Prober(options, {"a"}).results()[0].reason, "");
  const std::optional<int> status = end_of(left);
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_status(*status), "signal 9 (Killed)");
  EXPECT_FALSE(other.ended());
}

TEST(Process, StartsWithVariablesAndGivesWhatItSaid) {
  Process process({"sh", "-c", "echo $A >&2; exit 4"}, {.variables = {{"A", "b"}}});
  const std::optional<int> status = end_of(process);
  ASSERT_TRUE(status);
  EXPECT_EQ(exit_code(*status), 4);
  EXPECT_EQ(process.read(), "b\n");

  ASSERT_EQ(setenv("LOCKSTEP_TWICE", "old", 1), 0);
  Process other({"sh", "-c", "env | grep ^LOCKSTEP_TWICE >&2"}, {.variables = {{"LOCKSTEP_TWICE", "new"}}});
  ASSERT_TRUE(end_of(other));
  EXPECT_EQ(other.read(), "LOCKSTEP_TWICE=new\n") << "once";
  ASSERT_EQ(unsetenv("LOCKSTEP_TWICE"), 0);
}

TEST(Process, GivesAllThatAPipeHoldsAtItsEnd) {
  const std::string go = testing::TempDir() + "lockstep-pipe-" + std::to_string(getpid());
  Process process({"sh", "-c",
                   "until [ -e \"$0\" ]; do sleep 0.01; done; i=0; "
                   "while [ $i -lt 300 ]; do printf '%0999d\\n' $i >&2; i=$((i + 1)); done",
                   go});
  const int held = fcntl(process.errors(), F_SETPIPE_SZ, 1 << 20);  // as much as 16 pages of 64 KiB hold
  if (held < 1 << 20) GTEST_SKIP() << "the system gives no larger pipe: " << held;
  std::ofstream(go).close();
  ASSERT_TRUE(end_of(process)) << "all of it fits in";
  std::filesystem::remove(go);
  const std::string text = process.read_rest();
  EXPECT_EQ(text.size(), 300'000U);
  EXPECT_TRUE(text.ends_with("299\n"));
}

}  // namespace
}  // namespace lockstep::supervisor
