// The log of a run: rank 0 writes messages to its console; other ranks write warnings and errors to theirs; each rank
// writes messages to its file OUTPUT/logs/rank-NNNN.log, with time, host and rank in every line (log_lines.h reads
// them). Files are appended to, so a resumed run keeps its history; a last line without its end, which a kill may
// leave, is ended first. During its lifetime, a Log is the target of lockstep::log(). Throws Error if the file cannot
// be written. Any thread may log.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/core/log.h"
#include "lockstep/io/folder.h"
#include "lockstep/train/report/console.h"

namespace lockstep::train {

struct LogOptions {
  std::filesystem::path output;  // the run's folder; empty: no file
  int rank = 0;
  std::string host{};
  bool quiet = false;               // true: only warnings and errors go to the console
  LogLevel level = LogLevel::Info;  // the lowest level of messages on the console and in the file
  bool folder_per_host = false;     // true: the file is OUTPUT/logs/HOST/rank-NNNN.log
  std::FILE* out = stdout;          // the console's streams; not owned
  std::FILE* err = stderr;
  std::function<int()> columns{};              // width of the terminal; empty: found out from `out`
  StreamWriterOptions writer{};                // time to wait for the console's reader
  std::shared_ptr<const io::Folder> folder{};  // the folder `output`, if the caller has it open
};

class Log {
 public:
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const std::filesystem::path& file() const { return file_; }
  bool exists() const;    // the open file still has a name in some folder
  bool in_place() const;  // the open file still has its own name, in its folder
  // Continues in the folder `output`, to which the run writes now: if the open file is not the one there, opens it anew
  // with a warning. Throws Error and changes nothing if that fails.
  void follow(const io::Folder& output);
  Console& console() { return *console_; }
  bool talks() const { return talks_; }  // information goes to the console (rank 0, unless --quiet or --log-level)
  void to_file(std::string_view text);   // writes information only to the file

 private:
  class FileSink;

  io::FileDescriptor open_file(const io::Folder& output) const;

  std::string host_folder_;  // folder in OUTPUT/logs; empty: none
  std::filesystem::path file_;
  bool talks_;
  std::shared_ptr<Console> console_;  // shared with the sink: the logger may outlive the Log
  std::shared_ptr<FileSink> file_sink_;
  std::shared_ptr<spdlog::logger> file_logger_, logger_, previous_;
};

}  // namespace lockstep::train
