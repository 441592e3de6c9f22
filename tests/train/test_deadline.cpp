#include "lockstep/train/monitor/deadline.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsReadInEveryFormThatSchedulersAndPeopleWrite) {
  const std::pair<const char*, double> expected[] = {
      {"02:00:00", 7200}, {"00:00:07", 7}, {"100:59:59", 363599}, {"1-12:00:00", 129600}, {"0-00:01:00", 60},
      {"90m", 5400},      {"45s", 45},     {"2h", 7200},          {"1.5d", 129600},       {"0s", 0},
      {"0.25s", 0.25},    {"0:30", 30},    {"90:00", 5400}};
  for (const auto& [text, seconds] : expected) EXPECT_EQ(parse_duration(text, "time-limit"), seconds) << text;
}

TEST(Duration, AnythingElseIsAnErrorThatNamesOptionAndText) {
  // A plain number is minutes to Slurm and seconds to others.
  for (const char* text :
       {"",  "120",    "0:60",  "1-2:00", "1:2:3:4", "00:60:00", "00:00:60", "-1:00:00", "-5m", "2 h",
        "h", "1e999d", "inf s", "nans",   "1-",      "1-2h",     "2h30m",    "0x10s",    "12:", ":00:00"}) {
    try {
      parse_duration(text, "time-limit");
      ADD_FAILURE() << "'" << text << "' was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("--time-limit is '" + std::string(text) + "'"), std::string::npos);
    }
  }
}

TEST(RunTime, IsReadFromTheTextsOfBothOptions) {
  EXPECT_EQ(parse_run_time("auto", "auto"), RunTime());
  EXPECT_EQ(parse_run_time("none", "5m"), (RunTime{.follows_slurm = false, .margin = 300}));
  EXPECT_EQ(parse_run_time("2h", "auto"),
            (RunTime{.follows_slurm = false, .limit = 7200, .source = "--time-limit 2h"}));
  EXPECT_THROW(parse_run_time("5m", "5m"), Error);
  EXPECT_THROW(parse_run_time("never", "auto"), Error);
  EXPECT_THROW(parse_run_time("auto", "none"), Error);
}

DeadlineOptions within(const std::string& limit, const std::string& margin = "auto") {
  return {.time = parse_run_time(limit, margin), .variable = {}};
}

TEST(Deadline, NoneIsNeverReached) {
  for (Deadline deadline : {Deadline(), Deadline(within("auto")), Deadline(within("none"))}) {
    EXPECT_FALSE(deadline.exists());
    EXPECT_FALSE(deadline.reached(Deadline::Clock::now() + 10000h));
  }
}

TEST(Deadline, AFixedMarginIsKept) {
  const DeadlineOptions options = within("01:00:00", "5m");
  Deadline deadline(options);
  EXPECT_FALSE(deadline.reached(options.began + 54min));
  EXPECT_TRUE(deadline.reached(options.began + 55min));
}

TEST(Deadline, TheMarginGrowsWithStepsAndCheckpoints) {
  const DeadlineOptions options = within("10h");
  Deadline deadline(options);
  EXPECT_EQ(deadline.margin(), 30);
  deadline.reached(options.began + 1min);
  deadline.reached(options.began + 2min);
  EXPECT_DOUBLE_EQ(deadline.margin(), 30 + 3 * 60);
  deadline.checkpoint_took(100);
  EXPECT_DOUBLE_EQ(deadline.margin(), 30 + 3 * 60 + 2 * 100);
  deadline.checkpoint_took(50);  // the longest counts
  EXPECT_DOUBLE_EQ(deadline.margin(), 30 + 3 * 60 + 2 * 100);
}

TEST(Deadline, AGuessAtTheFirstCheckpointGoesWhenOneIsMeasured) {
  DeadlineOptions options = within("10h");
  options.checkpoint_seconds = 500;
  Deadline deadline(options);
  EXPECT_DOUBLE_EQ(deadline.margin(), 30 + 1000);
  deadline.checkpoint_took(1);
  EXPECT_DOUBLE_EQ(deadline.margin(), 30 + 2);
}

TEST(Deadline, AShortLimitHasASmallMargin) { EXPECT_DOUBLE_EQ(Deadline(within("50s")).margin(), 5); }

DeadlineOptions in_slurm(std::string end) {
  DeadlineOptions options = within("auto", "10s");
  options.variable = [end = std::move(end)](const std::string& name) {
    return name == "SLURM_JOB_END_TIME" ? std::optional(end) : std::nullopt;
  };
  return options;
}

TEST(Deadline, SlurmsEndOfTheJobIsTheDefault) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  Deadline deadline(in_slurm(std::to_string(now.count() + 1000)));
  EXPECT_FALSE(deadline.reached(Deadline::Clock::now() + 980s));
  EXPECT_TRUE(deadline.reached(Deadline::Clock::now() + 991s));
  EXPECT_THROW(Deadline(in_slurm("tomorrow")), Error);
  EXPECT_FALSE(Deadline(in_slurm("1e300")).reached(Deadline::Clock::now() + 100000h));
  DeadlineOptions ignored = in_slurm("0");
  ignored.time = parse_run_time("none", "10s");
  EXPECT_FALSE(Deadline(ignored).exists());
}

}  // namespace
}  // namespace lockstep::train
