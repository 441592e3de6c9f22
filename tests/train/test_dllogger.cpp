#include "lockstep/train/report/dllogger.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cmath>
#include <regex>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class DlloggerTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    fs::create_directories(folder_);
  }
  std::shared_ptr<const io::Folder> output() const { return std::make_shared<const io::Folder>(folder_); }
  fs::path file() const { return folder_ / "dllogger.json"; }
  std::vector<nlohmann::json> records() const {
    std::vector<nlohmann::json> all;
    for (const std::string& line : lines_of(read(file()))) {
      EXPECT_TRUE(line.starts_with("DLLL {")) << line;
      all.push_back(nlohmann::json::parse(line.substr(5)));
    }
    return all;
  }
  // An epoch of three updates and its evaluation, for each of two epochs from the given update on.
  void run(std::optional<std::int64_t> resumed, std::int64_t from = 1) {
    DlloggerWriter writer(output(), resumed, true);
    writer.parameters({{"lr", 0.1}});
    for (std::int64_t update = from; update <= 6; ++update) {
      const std::int64_t epoch = (update - 1) / 3;
      writer.log({epoch, 1 + (update - 1) % 3}, update, {{"train.loss", 2.5}});
      if (update % 3 != 0) continue;
      writer.log({epoch}, update, {{"train.loss", 2.25}});
      writer.log({epoch}, update, {{"val.loss", 2.0}});
    }
    writer.log({}, 6, {{"train.loss", 2.25}, {"val.loss", 2.0}});
  }
  std::string steps() const {
    std::string all;
    for (const auto& record : records()) all += record["step"].dump() + " ";
    return all;
  }
};

TEST_F(DlloggerTest, LinesHaveTheFormThatItsReadersExpect) {
  {
    DlloggerWriter writer(output(), {}, true);
    writer.parameters({{"lr", 0.1},
                       {"data",
                        "/im\xff"
                        "agenet"},
                       {"nesterov", false},
                       {"milestones", {3, 4.5}}});
    writer.metadata("train.loss", {{"format", ":.5f"}});
    writer.log({0, 5}, 5, {{"train.loss", 8.5}, {"lr", std::nan("")}});
    writer.log({}, 5, {{"train.loss", 8.5}});
  }
  const auto lines = lines_of(read(file()));
  ASSERT_EQ(lines.size(), 4u);
  const std::string head = R"(DLLL \{"timestamp": "\d+\.\d{6}", "datetime": "\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", )"
                           R"("elapsedtime": "\d+\.\d{6}", "type": )";
  for (const auto& [line, form] :
       {std::pair{lines[0], R"("LOG", "step": "PARAMETER", "data": \{"lr": 0\.1, "data": "/im\\ufffdagenet", )"
                            R"("nesterov": false, "milestones": \[3, 4\.5\]\}\})"},
        {lines[1], R"("METADATA", "metric": "train\.loss", "metadata": \{"format": ":\.5f"\}\})"},
        {lines[2], R"("LOG", "step": \[0, 5\], "data": \{"train\.loss": 8\.5, "lr": null, "global_step": 5\}\})"},
        {lines[3], R"("LOG", "step": \[\], "data": \{"train\.loss": 8\.5, "global_step": 5\}\})"}})
    EXPECT_TRUE(std::regex_match(line, std::regex(head + form))) << line << "\n" << head << form;
}

TEST_F(DlloggerTest, ANewRunMovesTheOldFileAside) {
  run({});
  const std::string first = read(file());
  EXPECT_EQ(steps(), "\"PARAMETER\" [0,1] [0,2] [0,3] [0] [0] [1,1] [1,2] [1,3] [1] [1] [] ");
  run({});
  EXPECT_EQ(read(folder_ / "dllogger.1.json"), first);
  EXPECT_EQ(records().size(), 12u);
  { DlloggerWriter(output(), {}, false); }
  EXPECT_FALSE(fs::exists(file())) << "also if the new run writes none";
}

TEST_F(DlloggerTest, ResumingTakesOutLaterUpdatesAndRepeatsNothing) {
  run({});
  run(3, 3);  // the third update's evaluation is made up: it is in the file
  EXPECT_EQ(steps(), "\"PARAMETER\" [0,1] [0,2] [0,3] [0] [0] \"PARAMETER\" [1,1] [1,2] [1,3] [1] [1] [] ");
}

TEST_F(DlloggerTest, AnEvaluationThatIsMadeUpIsNotTakenForThatOfTheRunsLastLine) {
  {
    DlloggerWriter writer(output(), {}, true);
    writer.log({0}, 3, {{"val.loss", 2.0}});
    writer.log({1, 1}, 4, {{"train.loss", 2.5}});
    writer.log({}, 4, {{"train.loss", 2.25}, {"val.loss", 2.0}});  // the run was stopped here
  }
  {
    DlloggerWriter writer(output(), 4, true);
    writer.log({1}, 4, {{"val.loss", 1.5}});
  }
  EXPECT_EQ(steps(), "[0] [1,1] [] [1] ");
}

TEST_F(DlloggerTest, ALineThatIsNoneIsTakenOutWithAWarning) {
  run({});
  std::ofstream(file(), std::ios::app)
      << "{\"step\": 3}\nDLLL {\"type\": \"LOG\", \"step\": [0]}\nDLLL {\"type\": \"LO";
  std::ostringstream warnings;
  const auto before =
      install_log(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(warnings)));
  { DlloggerWriter(output(), 6, true); }
  install_log(before);
  EXPECT_EQ(records().size(), 12u);
  const std::string text = warnings.str();
  for (const char* line : {"line 13 is no", "line 14 is no", "line 15 is no"})
    EXPECT_NE(text.find(line), text.npos) << text;
}

TEST_F(DlloggerTest, WhatIsNoFileIsRefused) {
  fs::create_directories(file());
  EXPECT_THROW(DlloggerWriter::check_file(*output()), Error);
}

}  // namespace
}  // namespace lockstep::train
