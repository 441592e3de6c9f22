// The document of a run, from files as a run and a kill leave them.
#include "tools/report/run_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "tests/messages.h"
#include "tests/train/streams.h"
#include "tools/report/page.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

class RunReportTest : public train::FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    fs::create_directories(folder_ / "logs");
  }
  void append(const fs::path& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::app) << text;
  }
  static std::string line(int step, const std::string& loss, int slowest = 0) {
    return fmt::format(
        "{{\"step\":{},\"epoch\":1,\"split\":\"train\",\"loss\":{},\"seconds\":{}.5,\"slowest_rank\":{},"
        "\"slowest_lead_seconds\":0.25,\"table\":[[1]]}}\n",
        step, loss, step, slowest);
  }
  nlohmann::ordered_json document() const {
    RunReport run(folder_);
    run.update();
    return run.json();
  }
};

TEST_F(RunReportTest, LinesBecomeColumnsAndSums) {
  append("metrics.jsonl",
         line(1, "2.5") + line(2, "null", 1) + "no record\n" + line(3, "1.5", 1) + "{\"step\":4,\"spl");
  const auto run = document();
  const auto& train = run["series"]["train"];
  EXPECT_EQ(train["lines"], 3);
  EXPECT_EQ(train["columns"]["loss"].dump(), "[2.5,null,1.5]");
  EXPECT_FALSE(train["columns"].contains("table"));
  EXPECT_EQ(run["totals"]["slowest"].dump(),
            R"([{"rank":0,"times":1,"lead_seconds":0.25},{"rank":1,"times":2,"lead_seconds":0.5}])");
  EXPECT_EQ(run["bad_lines"], 1);
  EXPECT_EQ(run["last_step"], 3);
}

TEST_F(RunReportTest, ARunIsReadOnAndAFileThatAResumeReplacedAnew) {
  append("metrics.jsonl", line(1, "2") + "{\"step\":2,\"ep");
  RunReport run(folder_);
  EXPECT_TRUE(run.update());
  EXPECT_FALSE(run.update());
  append("metrics.jsonl", line(2, "1").substr(13));
  EXPECT_TRUE(run.update());
  EXPECT_EQ(run.json()["series"]["train"]["columns"]["loss"].dump(), "[2.0,1.0]");
  std::ofstream(folder_ / "new") << line(1, "3");
  fs::rename(folder_ / "new", folder_ / "metrics.jsonl");
  EXPECT_TRUE(run.update());
  EXPECT_EQ(run.json()["series"]["train"]["columns"]["loss"].dump(), "[3.0]");
}

TEST_F(RunReportTest, OfManyLinesTheLowestAndTheHighestStay) {
  std::string lines;
  for (int step = 1; step <= 5000; ++step)
    lines += line(step, step == 777 ? "0.5" : step == 4001 ? "99" : step == 99 ? "null" : "2");
  append("metrics.jsonl", lines);
  MetricTable table(folder_ / "metrics.jsonl");
  table.update();
  const auto columns = table.series(100)["train"]["columns"];
  std::vector<int> steps = columns["step"].get<std::vector<int>>();
  EXPECT_LE(steps.size(), 102u);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  for (const int step : {1, 99, 777, 4001, 5000}) EXPECT_EQ(std::ranges::count(steps, step), 1) << step;
}

TEST_F(RunReportTest, LogsGiveResumesFaultsAndRanks) {
  const std::string head = "2026-11-22 18:04:0";
  append("logs/rank-0000.log",
         head + "0.000 node1 rank 0 error: of a run before\n" + head +
             "1.000 node1 rank 0 info: this is run 29133fbecb8632da\n" + head +
             "2.000 node1 rank 0 info: epoch 1/3  step 50/282  loss 2.1\n" + head +
             "5.000 node1 rank 0 info: resumed a/step-0000000040.h5 at step 40, 0 of 9 samples into epoch 1\n" + head +
             "5.500 node1 rank 0 info: this is run 29133fbecb8632da\n" + head +
             "6.000 node1 rank 0 info: memory: at most 58 MiB resident on this rank\n");
  append("logs/rank-0001.log", head + "3.000 node2 rank 1 error: [x] broken\n");
  append("logs/supervisor.log", head + "4.000 info: ended after 3.0 s: exit code 255; newest checkpoint: step 40\n");
  const auto run = document();
  std::string events;
  for (const auto& event : run["events"])
    events += event["kind"].get<std::string>() + " " + event["step"].dump() + " of " + event["rank"].dump() + "; ";
  EXPECT_EQ(events, "start 0 of 0; fault 50 of 1; fault 50 of -1; resume 40 of 0; ");
  EXPECT_EQ(run["ranks"][0].dump(), R"({"rank":0,"host":"node1","memory_mib":58.0,"warnings":0,"errors":0})");
  EXPECT_EQ(run["ranks"][1].dump(), R"({"rank":1,"host":"node2","memory_mib":null,"warnings":0,"errors":1})");
}

TEST_F(RunReportTest, FactsThatAreNoneOfARunAreNotReadIntoMemory) {
  append("metrics.jsonl", line(1, "2"));
  append("facts.json", "{\"options\":{\"lr\":0.5}}");
  EXPECT_EQ(document()["options"]["lr"], 0.5);
  fs::resize_file(folder_ / "facts.json", std::uintmax_t{17} << 20);
  RunReport run(folder_);
  const std::string message = error_of([&] { run.update(); });
  EXPECT_TRUE(has(message, "facts.json has 17825792 bytes, expected at most 16777216")) << message;
}

TEST_F(RunReportTest, TextOfARunCannotEndThePagesScript) {
  append("logs/rank-0000.log", "2026-11-22 18:04:01.000 node1 rank 0 error: </script><script>alert(1)\n");
  RunReport run(folder_);
  run.update();
  std::vector<RunReport> runs;
  runs.push_back(std::move(run));
  const std::string page = page_with(report_document(runs, false));
  EXPECT_EQ(page.find("</script><script>alert"), page.npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert"), page.npos);
  EXPECT_EQ(page.find("/*DATA*/"), page.npos);
}

TEST_F(RunReportTest, ATraceIsSummedByRankAndTrack) {
  append("trace.json",
         R"({"traceEvents":[{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 1 on node2"}},
             {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"wait"}},
             {"ph":"X","pid":1,"tid":2,"name":"a","ts":0,"dur":500000},{"ph":"X","pid":1,"tid":2,"name":"b","ts":9,"dur":250000}]})");
  EXPECT_EQ(trace_times(folder_ / "trace.json").dump(), R"([{"rank":1,"host":"node2","tracks":{"wait":0.75}}])");
  append("other.json", "{\"traceEvents\":3}");
  EXPECT_THROW(trace_times(folder_ / "other.json"), Error);
  EXPECT_THROW(trace_times(folder_ / "absent.json"), Error);
  EXPECT_THROW(RunReport(folder_ / "absent"), Error);
}

}  // namespace
}  // namespace lockstep::tools
