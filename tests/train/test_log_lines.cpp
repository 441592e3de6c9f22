// Reading log files: one line, one file that grows or is cut, and all files of a run in the order of their times.
#include "lockstep/train/report/log_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/train/report/log.h"
#include "lockstep/train/report/log_merge.h"
#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

TEST(LogLine, HasItsParts) {
  const std::string text = "2026-11-22 18:04:06.123 node1 rank 12 warning: careful: rank 3 info: no";
  const auto line = parse_log_line(text);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->time, "2026-11-22 18:04:06.123");
  EXPECT_EQ(line->host, "node1");
  EXPECT_EQ(line->rank, 12);
  EXPECT_EQ(line->level, LogLevel::Warning);
  EXPECT_EQ(line->text, "careful: rank 3 info: no");
  EXPECT_EQ(line->str(), text);
  const std::string supervisor = "2026-11-22 18:04:06.123 info: start 1: mpirun -n 2";
  const auto other = parse_log_line(supervisor);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->rank, -1);
  EXPECT_EQ(other->text, "start 1: mpirun -n 2");
  EXPECT_EQ(other->str(), "2026-11-22 18:04:06.123 supervisor info: start 1: mpirun -n 2");
}

TEST(LogLine, WhatIsNoneIsEmpty) {
  for (const char* text :
       {"", "2026", "2026-11-22 18:04:06.123", "2026-11-22 18:04:06.123 ", "2026-11-22 18:04:06.123 node1",
        "2026-11-22 18:04:06.123 node1 rank ", "2026-11-22 18:04:06.123 node1 rank x info: a",
        "2026-11-22 18:04:06.123 node1 rank -1 info: a", "2026-11-22 18:04:06.123 node1 rank 99999999999 info: a",
        "2026-11-22 18:04:06.123 node1 rank 1 loud: a", "2026-11-22 18:04:06.123 node1 rank 1 info",
        "2026-11-22T18:04:06.123 node1 rank 1 info: a", "  /lib/x.so(main+0x12) [0x7f]"})
    EXPECT_FALSE(parse_log_line(text)) << text;
}

class LogFilesTest : public FolderTest {
 protected:
  void write(const std::string& name, const std::string& text, std::ios::openmode mode = std::ios::app) {
    const fs::path path = folder_ / "logs" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, mode) << text;
  }
  static std::string line(int second, int rank, const std::string& text, const std::string& host = "node1") {
    return fmt::format("2026-11-22 18:04:{:02}.000 {} rank {} info: {}\n", second, host, rank, text);
  }
  static std::string texts(LogFiles& files) {
    std::string all;
    while (const auto found = files.next()) all += found->text + ";";
    return all;
  }
};

TEST_F(LogFilesTest, AreMergedByTimeWhereverTheyLie) {
  write("rank-0000.log", line(1, 0, "a") + line(4, 0, "d") + line(4, 0, "e"));
  write("node1/rank-0000.log", line(6, 0, "g"));
  write("node2/rank-0001.log", line(2, 1, "b", "node2") + line(5, 1, "f", "node2"));
  write("supervisor.log", "2026-11-22 18:04:03.000 warning: c\n");
  write("supervisor.hosts", "node1 slots=1\n");
  write("node1/notes.txt", "no log\n");
  for (const fs::path& run : {folder_, folder_ / "logs"}) {
    LogFiles files(run);
    EXPECT_EQ(files.size(), 4u);
    EXPECT_EQ(texts(files), "a;b;c;d;e;f;g;");
    EXPECT_TRUE(files.rest().empty());
  }
  LogFiles one(folder_ / "logs" / "node2" / "rank-0001.log");
  EXPECT_EQ(texts(one), "b;f;");
}

TEST_F(LogFilesTest, LinesWithoutATimeFollowTheirOwnFilesLine) {
  write("rank-0000.log", "torn\n" + line(1, 0, "a") + "stack 1\nstack 2\n" + line(3, 0, "c"));
  write("node2/rank-0007.log", std::string("\n") + line(1, 7, "b", "node2") + "stack 3\n");
  LogFiles files(folder_);
  std::vector<std::string> lines;
  while (const auto found = files.next()) lines.push_back(found->str());
  const std::string blank(23, ' ');
  EXPECT_EQ(lines, (std::vector<std::string>{
                       blank + " ? rank 0 | torn", blank + " node2 rank 7 | ",
                       "2026-11-22 18:04:01.000 node1 rank 0 info: a", blank + " node1 rank 0 | stack 1",
                       blank + " node1 rank 0 | stack 2", "2026-11-22 18:04:01.000 node2 rank 7 info: b",
                       blank + " node2 rank 7 | stack 3", "2026-11-22 18:04:03.000 node1 rank 0 info: c"}));
}

TEST_F(LogFilesTest, AFileStaysInOrderThoughItsClockIsSetBack) {
  write("rank-0000.log", line(5, 0, "a") + line(1, 0, "b") + line(9, 0, "d"));
  write("rank-0001.log", line(7, 1, "c"));
  LogFiles files(folder_);
  EXPECT_EQ(texts(files), "a;b;c;d;");
}

TEST_F(LogFilesTest, ALineThatIsCutComesLast) {
  write("rank-0000.log", line(1, 0, "a") + "2026-11-22 18:04:02.000 node1 ra");
  write("rank-0001.log", line(3, 1, "b"));
  LogFiles files(folder_);
  EXPECT_EQ(texts(files), "a;b;");
  const auto rest = files.rest();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].rank, 0);
  EXPECT_EQ(rest[0].text, "2026-11-22 18:04:02.000 node1 ra");
}

TEST_F(LogFilesTest, FollowsFilesThatGrowAppearAndAreReplaced) {
  write("rank-0000.log", line(1, 0, "a"));
  LogFiles files(folder_);
  EXPECT_EQ(texts(files), "a;");
  files.follow();
  EXPECT_EQ(texts(files), "");
  const std::string whole = line(2, 0, "b");
  write("rank-0000.log", whole.substr(0, 30));
  files.follow();
  EXPECT_EQ(texts(files), "") << "the line is not whole yet";
  write("rank-0000.log", whole.substr(30));
  write("node2/rank-0001.log", line(3, 1, "c", "node2"));
  files.follow();
  EXPECT_EQ(texts(files), "b;c;");
  fs::rename(folder_ / "logs" / "rank-0000.log", folder_ / "logs" / "old");
  files.follow();
  write("rank-0000.log", line(4, 0, "d"));
  files.follow();
  EXPECT_EQ(texts(files), "d;");
  write("rank-0000.log", line(5, 0, "e"), std::ios::trunc);
  files.follow();
  EXPECT_EQ(texts(files), "") << "a file of the same size looks unchanged";
  write("rank-0000.log", "", std::ios::trunc);
  files.follow();
  write("rank-0000.log", line(6, 0, "f"));
  files.follow();
  EXPECT_EQ(texts(files), "f;");
}

TEST_F(LogFilesTest, AnEndlessLineComesInPieces) {
  std::string text(3 << 20, 'x');
  text += "\n";
  text += line(1, 0, "a");
  write("rank-0000.log", text);
  LogFiles files(folder_);
  std::size_t bytes = 0, pieces = 0;
  std::string last;
  while (const auto found = files.next()) {
    last = found->text;
    if (last == "a") break;
    bytes += last.size();
    ++pieces;
    EXPECT_LE(last.size(), std::size_t{2} << 20);
  }
  EXPECT_EQ(bytes, std::size_t{3} << 20);
  EXPECT_GT(pieces, 1u);
  EXPECT_EQ(last, "a");
}

TEST_F(LogFilesTest, WhatALogWritesIsRead) {
  TextStream out, err;
  for (const bool per_host : {false, true}) {
    Log log({.output = folder_,
             .rank = 3,
             .host = "node7",
             .folder_per_host = per_host,
             .out = out.file(),
             .err = err.file()});
    lockstep::log()->warn("careful\nand more");
  }
  LogFiles files(folder_);
  EXPECT_EQ(files.size(), 2u);
  int count = 0;
  for (; const auto found = files.next(); ++count) {
    EXPECT_EQ(found->host, "node7");
    EXPECT_EQ(found->rank, 3);
    EXPECT_EQ(found->level, LogLevel::Warning);
    EXPECT_FALSE(found->time.empty());
  }
  EXPECT_EQ(count, 4);
}

TEST_F(LogFilesTest, WithoutLogsThereIsAnErrorThatSaysWhatWasExpected) {
  const auto error = [](const fs::path& path) -> std::string {
    try {
      LogFiles files(path);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error(folder_ / "absent").find("is no folder, expected that of a run"), std::string::npos);
  fs::create_directories(folder_ / "logs" / "node1");
  write("supervisor.log", "2026-11-22 18:04:03.000 warning: c\n");
  EXPECT_NE(error(folder_).find("has no rank-NNNN.log"), std::string::npos);
}

TEST(LogFilter, TakesRanksHostsAndLevels) {
  const LogLine line{.time = "2026-11-22 18:04:06.123", .host = "node1", .rank = 3, .level = LogLevel::Warning};
  EXPECT_TRUE(LogFilter{}.wants(line));
  EXPECT_TRUE((LogFilter{.ranks = {1, 3}, .hosts = {"node1"}, .level = LogLevel::Warning}.wants(line)));
  EXPECT_FALSE((LogFilter{.ranks = {1}}.wants(line)));
  EXPECT_FALSE((LogFilter{.hosts = {"node2"}}.wants(line)));
  EXPECT_FALSE((LogFilter{.level = LogLevel::Error}.wants(line)));
  const LogLine supervisor{.level = LogLevel::Info};
  EXPECT_TRUE(LogFilter{}.wants(supervisor));
  EXPECT_FALSE((LogFilter{.ranks = {0}}.wants(supervisor)));
  EXPECT_FALSE((LogFilter{.hosts = {"node1"}}.wants(supervisor)));
}

}  // namespace
}  // namespace lockstep::train
