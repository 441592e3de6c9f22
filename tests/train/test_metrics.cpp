#include "lockstep/train/report/metrics.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <limits>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

class MetricsTest : public FolderTest {
 protected:
  std::vector<nlohmann::json> records() {
    std::vector<nlohmann::json> all;
    for (const auto& line : lines_of(read(folder_ / "metrics.jsonl"))) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  std::vector<std::string> names() {  // "train 3"
    std::vector<std::string> all;
    for (const auto& r : records()) all.push_back(r["split"].get<std::string>() + " " + r["step"].dump());
    return all;
  }
  void run(std::optional<std::int64_t> resumed, std::int64_t from, std::int64_t to) {
    MetricsWriter metrics(folder_, resumed);
    for (std::int64_t step = from; step <= to; ++step) metrics.write({.step = step, .loss = 0.5});
  }
};

TEST_F(MetricsTest, ARecordHasItsFieldsInOrder) {
  MetricsWriter metrics(folder_, {});
  metrics.write({.step = 50,
                 .epoch = 2,
                 .split = "eval",
                 .loss = 0.25,
                 .metrics = {{.name = "accuracy", .results = {0.5}}, {.name = "errors", .results = {1, 2}}},
                 .lr = 0.125,
                 .samples_per_second = 100,
                 .seconds = 1.5,
                 .extra = {{"top5", 0.75}}});
  EXPECT_EQ(
      read(folder_ / "metrics.jsonl"),
      "{\"step\":50,\"epoch\":2,\"split\":\"eval\",\"loss\":0.25,\"accuracy\":0.5,\"errors\":[1.0,2.0],\"lr\":0.125,"
      "\"samples_per_second\":100.0,\"seconds\":1.5,\"top5\":0.75}\n");
}

TEST_F(MetricsTest, ARecordOfAModelThatDoesNotCountHasNoAccuracy) {
  MetricsWriter metrics(folder_, {});
  metrics.write({.step = 1, .epoch = 1, .split = "train", .loss = 0.25, .lr = 0.125});
  EXPECT_EQ(read(folder_ / "metrics.jsonl"),
            "{\"step\":1,\"epoch\":1,\"split\":\"train\",\"loss\":0.25,\"lr\":0.125,\"samples_per_second\":0.0,"
            "\"seconds\":0.0}\n");
}

TEST_F(MetricsTest, AFileThatIsRemovedOrReplacedIsOpenedAnewWhereTheRunWrites) {
  std::ostringstream warnings;
  const auto logger =
      install_log(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(warnings)));
  const auto folder_at = [](const std::filesystem::path& path) {
    std::filesystem::create_directories(path);
    return std::make_shared<const io::Folder>(path);
  };
  const auto here = folder_at(folder_);
  MetricsWriter metrics(here, std::nullopt);
  std::int64_t step = 0;
  const auto write = [&] {
    metrics.write({.step = ++step});
    return lines_of(warnings.str()).size();
  };
  metrics.follow(here);
  EXPECT_EQ(write(), 0u) << "nothing happened to it";
  std::filesystem::remove(folder_ / "metrics.jsonl");
  metrics.follow(here);
  metrics.follow(here);
  EXPECT_EQ(write(), 1u) << warnings.str();
  EXPECT_EQ(names(), std::vector<std::string>{"train 2"});
  EXPECT_NE(warnings.str().find((folder_ / "metrics.jsonl").string() + " was removed or replaced"), std::string::npos);
  std::filesystem::rename(folder_ / "metrics.jsonl", folder_ / "old");
  std::ofstream(folder_ / "metrics.jsonl") << "";  // as an editor leaves it
  metrics.follow(here);
  EXPECT_EQ(write(), 2u);
  EXPECT_EQ(names(), std::vector<std::string>{"train 3"});
  const auto there = folder_at(folder_ / "there");  // the run has gone on in another folder
  metrics.follow(there);
  EXPECT_EQ(write(), 3u);
  EXPECT_EQ(metrics.file(), folder_ / "there" / "metrics.jsonl");
  EXPECT_EQ(lines_of(read(metrics.file())).size(), 1u);
  // A link that is put in its place is not followed, and the open file stays.
  std::filesystem::remove(metrics.file());
  std::filesystem::create_symlink(folder_ / "old", metrics.file());
  EXPECT_THROW(metrics.follow(there), Error);
  write();
  EXPECT_EQ(lines_of(read(folder_ / "old")).size(), 1u);
  install_log(logger);
}

TEST_F(MetricsTest, LossesComeBackBitForBit) {
  const std::vector<double> losses{0.1, 1.0 / 3, 2.302585092994046, 0x1.fffffffffffffp-3, 5e-324, 0x1.234567p0f};
  {
    MetricsWriter metrics(folder_, {});
    for (std::size_t i = 0; i < losses.size(); ++i) {
      metrics.write({.step = static_cast<std::int64_t>(i), .loss = losses[i]});
    }
  }
  const auto all = records();
  ASSERT_EQ(all.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(all[i]["loss"].get<double>(), losses[i]);
}

// Files may not grow for a while, in the middle of a line.
TEST_F(MetricsTest, AFullDiskLeavesNoGap) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limits{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limits), 0);
  const rlim_t before = limits.rlim_cur;
  std::ostringstream warnings;
  const auto logger =
      install_log(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(warnings)));
  {
    MetricsWriter metrics(folder_, {});
    for (std::int64_t step = 1; step <= 12; ++step) {
      if (step == 3) limits.rlim_cur = std::filesystem::file_size(folder_ / "metrics.jsonl") + 20;
      if (step == 9) limits.rlim_cur = before;
      EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limits), 0);
      EXPECT_NO_THROW(metrics.write({.step = step, .loss = 0.5}));
    }
  }
  install_log(logger);
  std::signal(SIGXFSZ, handler);
  const std::string said = warnings.str();
  EXPECT_EQ(names().size(), 12u);
  EXPECT_EQ(records()[6]["step"], 7);
  EXPECT_EQ(lines_of(said).size(), 2u) << said;
  EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  EXPECT_NE(said.find("can be written again"), std::string::npos) << said;
}

TEST_F(MetricsTest, WhatIsNotFiniteIsNull) {
  MetricsWriter metrics(folder_, {});
  metrics.write({.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(records().at(0)["loss"].is_null());
}

TEST_F(MetricsTest, ResumingTakesOutLaterSteps) {
  run({}, 1, 6);
  run(4, 5, 7);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"train 1", "train 2", "train 3", "train 4", "train 5", "train 6", "train 7"}));
}

TEST_F(MetricsTest, ResumingFromTheStartTakesOutAll) {
  run({}, 1, 3);
  run(0, 1, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"train 1"}));
}

TEST_F(MetricsTest, AnEvaluationThatIsRepeatedStandsOnce) {
  {
    MetricsWriter metrics(folder_, {});
    metrics.write({.step = 4});
    metrics.write({.step = 4, .split = "eval", .loss = 1});
  }
  MetricsWriter metrics(folder_, 4);
  metrics.write({.step = 4, .split = "eval", .loss = 1});
  metrics.write({.step = 8, .split = "eval", .loss = 1});
  EXPECT_EQ(names(), (std::vector<std::string>{"train 4", "eval 4", "eval 8"}));
}

TEST_F(MetricsTest, ALineCutShortIsLeftOut) {
  run({}, 1, 3);
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\":4,\"spl";
  run(3, 4, 4);
  EXPECT_EQ(names(), (std::vector<std::string>{"train 1", "train 2", "train 3", "train 4"}));
}

TEST_F(MetricsTest, AWholeRecordWithoutItsNewlineIsLeftOutToo) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "metrics.jsonl") << "{\"step\":1,\"split\":\"train\"}\n{\"step\":2,\"split\":\"train\"}";
  run(2, 2, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"train 1", "train 2"}));
}

TEST_F(MetricsTest, ResumingWithoutAFileStartsOne) {
  run(10, 11, 12);
  EXPECT_EQ(names(), (std::vector<std::string>{"train 11", "train 12"}));
}

TEST_F(MetricsTest, ANewRunMovesTheOldMetricsAside) {
  run({}, 1, 2);
  run({}, 1, 3);
  run({}, 1, 1);
  EXPECT_EQ(names().size(), 1u);
  EXPECT_EQ(lines_of(read(folder_ / "metrics.1.jsonl")).size(), 2u);
  EXPECT_EQ(lines_of(read(folder_ / "metrics.2.jsonl")).size(), 3u);
}

TEST_F(MetricsTest, AnUnwritableFolderIsNamed) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "file") << "data";
  try {
    MetricsWriter metrics(folder_ / "file", {});
    FAIL() << "a file served as a folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find((folder_ / "file").string()), std::string::npos) << error.what();
  }
  EXPECT_EQ(read(folder_ / "file"), "data");
}

}  // namespace
}  // namespace lockstep::train
