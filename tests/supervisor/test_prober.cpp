#include "tools/supervisor/prober.h"

#include <gtest/gtest.h>

namespace lockstep::supervisor {
namespace {

using std::chrono::milliseconds;

// A shell takes the place of ssh: it reads the host as its script's name.
ProbeOptions through_shell(const char* script, milliseconds limit) {
  return {.agent = {"sh", "-c", script}, .job = "none", .limit = limit};
}

TEST(Prober, TellsHostsThatAnswerFromOthers) {
  const char* script =
      "case $0 in good) ;; slow) sleep 100 ;; *) echo first; echo \"$0: no route\" >&2; exit 255 ;; esac";
  const auto results = Prober(through_shell(script, milliseconds(1500)), {"good", "slow", "bad"}).results();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].reason, "");
  EXPECT_EQ(results[1].reason, "no answer within 1.5 s");
  EXPECT_EQ(results[2].reason, "bad: no route");
}

TEST(Prober, NamesAStatusWhereNothingWasSaid) {
  EXPECT_EQ(Prober(through_shell("exit 3", milliseconds(5000)), {"a"}).results()[0].reason, "exit code 3");
  EXPECT_EQ(Prober({.agent = {"/no/such/agent"}}, {"a"}).results()[0].reason,
            "/no/such/agent: No such file or directory");
}

TEST(Prober, EndsWhatIsLeftOfTheJob) {
  Process left({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine"}}});
  Process other({"sleep", "1000"}, {.variables = {{"OMPI_LOCKSTEP_JOB", "mine2"}}});
  // What ssh does with the words after the host's name: it gives them to a shell, as one line.
  const ProbeOptions options{
      .agent = {"sh", "-c", "shift 0; exec sh -c \"$*\""}, .job = "mine", .limit = milliseconds(30000)};
  const auto results = Prober(options, {"a"}).results();
  EXPECT_EQ(results[0].reason, "");
  std::optional<int> status;
  for (int i = 0; i < 1000 && !(status = left.ended()); ++i) usleep(10000);
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_status(*status), "signal 9 (Killed)");
  EXPECT_FALSE(other.ended());
}

TEST(Process, StartsWithVariablesAndGivesWhatItSaid) {
  Process process({"sh", "-c", "echo $A >&2; exit 4"}, {.variables = {{"A", "b"}}});
  std::optional<int> status;
  for (int i = 0; i < 1000 && !(status = process.ended()); ++i) usleep(10000);
  ASSERT_TRUE(status);
  EXPECT_EQ(exit_code(*status), 4);
  EXPECT_EQ(process.read(), "b\n");
}

}  // namespace
}  // namespace lockstep::supervisor
