#include "lockstep/train/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <regex>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class LogTest : public FolderTest {
 protected:
  LogOptions options(int rank) {
    return {.output = folder_, .rank = rank, .host = "node7", .out = out_.file(), .err = err_.file()};
  }
  TextStream out_, err_;
};

TEST_F(LogTest, NobodyHearsTheLibraryUntilAProgramInstallsALog) {
  log()->error("nobody listens");
  EXPECT_FALSE(log()->should_log(spdlog::level::critical));
  {
    Log run(options(0));
    EXPECT_TRUE(log()->should_log(spdlog::level::info));
  }
  EXPECT_FALSE(log()->should_log(spdlog::level::critical));
}

TEST_F(LogTest, TheCallersLoggerStaysTheirs) {
  const auto before = spdlog::default_logger();
  Log run(options(0));
  EXPECT_EQ(spdlog::default_logger(), before);
  EXPECT_EQ(spdlog::get("lockstep"), nullptr);
}

TEST_F(LogTest, EveryLineOfTheFileHasTimeHostAndRank) {
  {
    Log run(options(12));
    EXPECT_EQ(run.file(), folder_ / "logs" / "rank-0012.log");
    log()->info("one {}", 1);
    log()->warn("two\nand a second line\n");
    log()->debug("three");
    run.to_file("four");
  }
  const auto lines = lines_of(read(folder_ / "logs" / "rank-0012.log"));
  ASSERT_EQ(lines.size(), 5u);
  const std::regex form(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} node7 rank 12 (debug|info|warning): .+)");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, form)) << line;
  EXPECT_TRUE(lines[0].ends_with("info: one 1"));
  EXPECT_TRUE(lines[2].ends_with("warning: and a second line"));
  EXPECT_TRUE(lines[4].ends_with("info: four"));
}

TEST_F(LogTest, AResumedRunAppends) {
  for (const char* text : {"first", "second"}) {
    Log run(options(0));
    log()->info(text);
  }
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 2u);
}

TEST_F(LogTest, RankZeroTalks) {
  Log run(options(0));
  log()->info("hello");
  log()->debug("not this");
  log()->warn("careful");
  EXPECT_EQ(out_.text(), "hello\n");
  EXPECT_EQ(err_.text(), "warning: careful\n");
}

TEST_F(LogTest, OtherRanksOnlyWarnAndSayWhoTheyAre) {
  Log run(options(3));
  log()->info("hello");
  log()->warn("careful\nvery");
  log()->error("broken");
  EXPECT_EQ(out_.text(), "");
  EXPECT_EQ(err_.text(),
            "[node7 rank 3] warning: careful\n[node7 rank 3] warning: very\n[node7 rank 3] error: broken\n");
}

TEST_F(LogTest, QuietLeavesWarningsAndTheFile) {
  LogOptions quiet = options(0);
  quiet.quiet = true;
  Log run(quiet);
  log()->info("hello");
  log()->warn("careful");
  EXPECT_FALSE(run.talks());
  EXPECT_EQ(out_.text(), "");
  EXPECT_EQ(err_.text(), "warning: careful\n");
  EXPECT_EQ(lines_of(read(run.file())).size(), 2u);
}

TEST_F(LogTest, LinesFromManyThreadsStayWhole) {
  {
    Log run(options(0));
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) log()->info("{0} {0} {0}", t);
      });
    }
  }
  const auto lines = lines_of(out_.text());
  EXPECT_EQ(lines.size(), 400u);
  for (const auto& line : lines) EXPECT_TRUE(std::regex_match(line, std::regex(R"((\d) \1 \1)"))) << line;
}

TEST_F(LogTest, AnUnwritableOutputIsNamed) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "data";
  LogOptions blocked = options(0);
  blocked.output = folder_ / "file";
  try {
    Log run(blocked);
    FAIL() << "a file served as a folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find((folder_ / "file").string()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("--output"), std::string::npos) << error.what();
  }
  EXPECT_EQ(read(folder_ / "file"), "data");
}

TEST_F(LogTest, LinesAppearAboveTheStatusLine) {
  LogOptions terminal = options(0);
  terminal.columns = [] { return 20; };
  {
    Log run(terminal);
    run.console().status("working");
    log()->info("hello");
    run.console().status("a status that is much too long");
  }
  EXPECT_EQ(out_.text(), "\rworking\r\r       \rhello\n\rworking\r\ra status that is mu\r\r                   \r");
}

TEST_F(LogTest, WhatATerminalWouldObeyIsWrittenOut) {
  {
    Log run(options(0));
    log()->info("class '{}'", "\x1b[2Jcat\xff");
    log()->warn("file '{}'\nand more", "a\rb\x9b");
  }
  EXPECT_EQ(out_.text(), "class '\\x1b[2Jcat\\xff'\n");
  EXPECT_EQ(err_.text(), "warning: file 'a\\rb\\x9b'\nwarning: and more\n");
  const std::string file = read(folder_ / "logs" / "rank-0000.log");
  EXPECT_EQ(file.find_first_of("\x1b\r\x9b\xff"), std::string::npos) << file;
  EXPECT_NE(file.find("\\x1b[2Jcat\\xff"), std::string::npos) << file;
}

TEST_F(LogTest, OnATerminalWarningsKeepTheirPlaceAmongTheLines) {
  LogOptions terminal = options(0);
  terminal.columns = [] { return 20; };
  Log run(terminal);
  log()->info("hello");
  log()->warn("careful");
  EXPECT_EQ(out_.text(), "hello\nwarning: careful\n");
}

TEST_F(LogTest, WithoutATerminalThereIsNoStatus) {
  Log run(options(0));
  EXPECT_FALSE(run.console().has_status());
  run.console().status("working");
  EXPECT_EQ(out_.text(), "");
}

}  // namespace
}  // namespace lockstep::train
