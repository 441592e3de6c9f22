// Reads the lines of log files, as train/report/log.h and the supervisor's console write them:
//
//   2026-11-22 18:04:06.123 node1 rank 3 info: epoch 1/30  step 50/11730  loss 2.1079 ...
//   2026-11-22 18:04:09.871 warning: ...                       (logs/supervisor.log)
//
// Times are those of the host's clock and time zone. One thread per object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/core/log.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::train {

struct LogLine {
  std::string time{};  // as in the file; empty: the line has no time of its own, and belongs to the one before it
  std::string host{};  // empty: the supervisor's, or not known
  int rank = -1;       // -1: the supervisor's
  LogLevel level = LogLevel::Info;
  std::string text{};

  // Returns the line as the file has it; one without a time begins with blanks in the place of the time, and has '|'
  // before its text.
  std::string str() const;
};

// Returns the parts of a line; empty if the line does not begin with a time, an origin and a level, as a line of a
// stack or what is left of a damaged line.
std::optional<LogLine> parse_log_line(std::string_view line);

// Reads a file that another process may still write.
class LogFileReader {
 public:
  // `line` has the host and rank of lines that come before the first one that tells them. Throws Error if the file
  // cannot be read.
  LogFileReader(std::filesystem::path file, LogLine line);

  // Returns the next line that has its end; empty: there is none yet. A line without a time gets host, rank and level
  // of the line before it. Of an endless line, a piece of 1 MiB is returned.
  std::optional<LogLine> next();
  // Returns what follows the last whole line: a line that is being written, or that a kill has cut; empty: nothing.
  std::optional<LogLine> rest();
  // Opens the file anew if its name leads to another file now, or if it was cut; call it when next() has returned
  // empty. Lines of the former file that were not read are lost. Does nothing while the name leads nowhere.
  void follow();

 private:
  bool fill();
  LogLine take(std::size_t length);

  std::filesystem::path file_;
  LogLine before_;  // the last line that had a time; at first, host and rank of the file
  io::FileDescriptor descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0, searched_ = 0;  // in buffer_: start of the next line, and where its end is looked for
  std::int64_t offset_ = 0;               // in the file: end of what is in buffer_
};

}  // namespace lockstep::train
