// The log files of a run, as one sequence of lines in the order of their times. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/train/report/log_lines.h"

namespace lockstep::train {

// The lines that a reader wants; the default wants all.
struct LogFilter {
  std::set<int> ranks{};          // empty: all ranks, and the supervisor
  std::set<std::string> hosts{};  // empty: all hosts, and the supervisor
  LogLevel level = LogLevel::Trace;

  bool wants(const LogLine& line) const;
};

// The files of a run: logs/rank-NNNN.log, logs/HOST/rank-NNNN.log and logs/supervisor.log, of which a run may have all
// (a resumed run may write to other places than before).
class LogFiles {
 public:
  // `run` is the folder of a run, its folder logs, or a log file. Throws Error if there is no log file.
  explicit LogFiles(const std::filesystem::path& run);
  // Whether the folder of a run has log files already.
  static bool has_files(const std::filesystem::path& run);

  // Returns the next line; empty: all whole lines were returned. Lines come in the order of their times; those of one
  // file stay in their order, whatever its host's clock did. A line without a time follows the line before it in its
  // file; those before a file's first time come first.
  std::optional<LogLine> next();
  // Returns what follows the last whole line of each file, after next() has returned empty.
  std::vector<LogLine> rest();
  // Looks for further files, and for files that were replaced; next() may then return further lines.
  void follow();

  std::size_t size() const { return sources_.size(); }

 private:
  LogFiles() = default;
  struct Source {
    std::filesystem::path path;
    LogFileReader reader;
    std::string time{};  // of the last line with a time, but never earlier than one before it
    std::optional<LogLine> head{};
  };
  void find_files();
  void add(const std::filesystem::path& path, LogLine line);
  void advance(Source& source);

  std::filesystem::path folder_, only_;  // only_: a file that was named itself; empty: all of folder_
  std::vector<std::unique_ptr<Source>> sources_;
  Source* last_ = nullptr;  // the source of the last line
};

}  // namespace lockstep::train
