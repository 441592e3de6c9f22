#include "lockstep/train/report/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <chrono>
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

TEST_F(LogTest, OnlyWarningsAndErrorsAreSaidUntilAProgramInstallsALog) {
  const auto expect_default = [] {
    testing::internal::CaptureStderr();
    log()->info("two ranks");
    log()->warn("careful");
    log()->error("broken");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "lockstep: warning: careful\nlockstep: error: broken\n");
  };
  expect_default();
  {
    Log run(options(0));
    EXPECT_TRUE(log()->should_log(LogLevel::Info));
  }
  expect_default();
}

TEST_F(LogTest, AProgramMayAskForSilence) {
  const auto before = install_log(nullptr);
  EXPECT_FALSE(log()->should_log(LogLevel::Error));
  install_log(before);
}

TEST_F(LogTest, TheCallersLoggerStaysTheirs) {
  const auto before = spdlog::default_logger();
  Log run(options(0));
  EXPECT_EQ(spdlog::default_logger(), before);
  EXPECT_EQ(spdlog::get("lockstep"), nullptr);
}

TEST_F(LogTest, EveryLineOfTheFileHasTimeHostAndRank) {
  {
    LogOptions all = options(12);
    all.level = LogLevel::Debug;
    Log run(all);
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

TEST_F(LogTest, LevelsHaveNames) {
  for (const LogLevel level :
       {LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Off})
    EXPECT_EQ(parse_log_level(name_of(level)), level);
  EXPECT_EQ(name_of(LogLevel::Warning), "warning");
  EXPECT_FALSE(parse_log_level("loud"));
  EXPECT_FALSE(parse_log_level(""));
}

TEST_F(LogTest, TheLevelHoldsForConsoleAndFile) {
  constexpr std::array kNames{"trace", "debug", "info", "warning", "error", "off"};
  for (std::size_t lowest = 0; lowest < kNames.size(); ++lowest) {
    TextStream out, err;
    LogOptions with = options(0);
    with.output = folder_ / kNames[lowest];
    with.level = static_cast<LogLevel>(lowest);
    with.out = out.file();
    with.err = err.file();
    {
      Log run(with);
      EXPECT_EQ(run.talks(), lowest <= 2) << kNames[lowest];
      log()->trace("a trace message");
      log()->debug("a debug message");
      log()->info("a info message");
      log()->warn("a warning message");
      log()->error("a error message");
      run.to_file("a info message for the file");
    }
    const std::string shown = out.text() + err.text(), file = read(with.output / "logs" / "rank-0000.log");
    for (std::size_t level = 0; level < 5; ++level) {
      const std::string message = fmt::format("a {} message\n", kNames[level]);
      EXPECT_EQ(shown.find(message) != shown.npos, level >= lowest) << message << shown;
      EXPECT_EQ(file.find(fmt::format(" {}: {}", kNames[level], message)) != file.npos, level >= lowest) << file;
    }
    EXPECT_EQ(file.find("for the file") != file.npos, lowest <= 2);
  }
}

TEST_F(LogTest, OtherRanksDoNotTalkMoreAtALowerLevel) {
  LogOptions all = options(1);
  all.level = LogLevel::Trace;
  Log run(all);
  log()->trace("everything");
  log()->info("much");
  log()->warn("careful");
  EXPECT_EQ(out_.text(), "");
  EXPECT_EQ(err_.text(), "[node7 rank 1] warning: careful\n");
  EXPECT_EQ(lines_of(read(run.file())).size(), 3u);
}

TEST_F(LogTest, AHostMayHaveAFolderOfItsOwn) {
  LogOptions own = options(3);
  own.folder_per_host = true;
  Log run(own);
  EXPECT_EQ(run.file(), folder_ / "logs" / "node7" / "rank-0003.log");
  log()->info("one");
  EXPECT_EQ(lines_of(read(run.file())).size(), 1u);
  fs::rename(folder_ / "logs", folder_ / "moved");
  EXPECT_FALSE(run.in_place());
  run.follow(io::Folder(folder_));
  EXPECT_TRUE(run.in_place());
  log()->info("two");
  EXPECT_TRUE(read(folder_ / "logs" / "node7" / "rank-0003.log").ends_with("two\n"));
}

TEST_F(LogTest, AnOddHostNameLeadsNowhereElse) {
  for (const auto& [host, expected] : {std::pair{"../../up", "_.._.._up"}, {"a b", "a_b"}, {"", "_"}, {"..", "_.."}}) {
    LogOptions own = options(0);
    own.host = host;
    own.folder_per_host = true;
    EXPECT_EQ(Log(own).file(), folder_ / "logs" / expected / "rank-0000.log");
  }
}

TEST_F(LogTest, ALineThatAKillHasCutIsEnded) {
  fs::create_directories(folder_ / "logs");
  std::ofstream(folder_ / "logs" / "rank-0000.log") << "2026-11-22 18:04:06.123 node7 rank 0 info: epo";
  {
    Log run(options(0));
    log()->info("resumed");
  }
  const auto lines = lines_of(read(folder_ / "logs" / "rank-0000.log"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("epo"));
  EXPECT_TRUE(lines[1].ends_with("info: resumed"));
}

TEST_F(LogTest, AResumedRunAppends) {
  for (const char* text : {"first", "second"}) {
    Log run(options(0));
    log()->info("{}", text);
  }
  EXPECT_EQ(lines_of(read(folder_ / "logs" / "rank-0000.log")).size(), 2u);
}

TEST_F(LogTest, AFileThatIsRemovedOrReplacedIsOpenedAnew) {
  Log run(options(3));
  const fs::path file = run.file();
  const auto text = [&] { return read(file); };
  log()->info("one");
  run.follow(io::Folder(folder_));
  EXPECT_TRUE(run.in_place());
  EXPECT_EQ(lines_of(text()).size(), 1u) << "nothing happened to it";
  fs::remove(file);
  EXPECT_FALSE(run.in_place());
  EXPECT_FALSE(run.exists());
  run.follow(io::Folder(folder_));
  log()->info("two");
  EXPECT_NE(text().find(file.string() + " was removed or replaced"), std::string::npos) << text();
  EXPECT_TRUE(text().ends_with("two\n"));
  EXPECT_NE(err_.text().find(file.string() + " was removed or replaced"), std::string::npos);
  fs::rename(folder_ / "logs", folder_ / "moved");
  EXPECT_FALSE(run.in_place());
  EXPECT_TRUE(run.exists());
  fs::create_directories(folder_ / "there");
  run.follow(io::Folder(folder_ / "there"));
  log()->info("three");
  EXPECT_EQ(run.file(), folder_ / "there" / "logs" / "rank-0003.log");
  EXPECT_TRUE(read(run.file()).ends_with("three\n"));
  EXPECT_TRUE(run.in_place());
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
        for (int i = 0; i < 100; ++i) log()->info("{} {} {}", t, t, t);
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

// Lines wait as far as there is room; those beyond are missing on the console, which says so, and in no file.
TEST_F(LogTest, AConsoleThatNobodyReadsHoldsNobodyUpAndLosesNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_GE(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  std::FILE* const console = fdopen(ends[1], "w");
  LogOptions stuck = options(0);
  stuck.out = console;
  stuck.writer = {.patience = std::chrono::milliseconds(50), .room = 4096};
  const auto line = [](int i) { return fmt::format("line {:0>100}", i); };
  constexpr int kLines = 200;  // more than the pipe and the queue hold
  std::string shown;
  {
    Log run(stuck);
    for (int i = 0; i < kLines; ++i) log()->info("{}", line(i));
    // The reader comes.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shown.find("lines are missing here") == shown.npos && std::chrono::steady_clock::now() < deadline) {
      std::array<char, 4096> block{};
      const ssize_t n = ::read(ends[0], block.data(), block.size());
      if (n > 0) shown.append(block.data(), static_cast<std::size_t>(n));
      log()->info("read again");
    }
  }
  EXPECT_NE(shown.find("lines are missing here"), shown.npos) << shown;
  EXPECT_NE(shown.find(line(0)), shown.npos);
  EXPECT_EQ(shown.find(line(kLines - 1)), shown.npos);
  const std::string file = read(folder_ / "logs" / "rank-0000.log");
  for (int i = 0; i < kLines; ++i) EXPECT_NE(file.find(line(i)), file.npos) << i;
  EXPECT_NE(file.find("the console accepts no text: no process reads this program's output"), file.npos);
  EXPECT_NE(file.find("the console accepts text again; "), file.npos);
  std::fclose(console);
  close(ends[0]);
}

TEST_F(LogTest, WithoutATerminalThereIsNoStatus) {
  Log run(options(0));
  EXPECT_FALSE(run.console().has_status());
  run.console().status("working");
  EXPECT_EQ(out_.text(), "");
}

}  // namespace
}  // namespace lockstep::train
