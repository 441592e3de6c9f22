#include "tools/supervisor/prober.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

namespace lockstep::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{100'000};  // for what takes milliseconds, also where the machine is busy

// Waits for the end.
std::optional<int> end_of(Process& process) {
  std::optional<int> status;
  const auto until = std::chrono::steady_clock::now() + kLong;
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
  const auto results = Prober(through_shell(script, kLong), {"good", "bad"}).results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].reason, "");
  EXPECT_EQ(results[1].reason, "bad: no route");
  const auto late = Prober(through_shell(script, milliseconds(200)), {"slow", "slow"}).results();
  ASSERT_EQ(late.size(), 2U);
  for (const ProbeResult& result : late) EXPECT_EQ(result.reason, "no answer within 0.2 s");
}

TEST(Prober, NamesAStatusWhereNothingWasSaid) {
  EXPECT_EQ(Prober(through_shell("exit 3", kLong), {"a"}).results()[0].reason, "exit code 3");
  EXPECT_EQ(Prober({.agent = {"/no/such/agent"}}, {"a"}).results()[0].reason,
            "/no/such/agent: No such file or directory");
}

TEST(Prober, EndsWhatIsLeftOfTheJob) {
  Process left({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine"}}});
  Process other({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine2"}}});
  // The way of ssh with the words after the host's name: it gives them to a shell, as one line.
  const ProbeOptions options{.agent = {"sh", "-c", "shift 0; exec sh -c \"$*\""}, .job = "mine", .limit = kLong};
  const auto results = Prober(options, {"a"}).results();
  EXPECT_EQ(results[0].reason, "");
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

}  // namespace
}  // namespace lockstep::supervisor
