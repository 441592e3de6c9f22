// The log of a run: rank 0 writes messages to its console; other ranks write warnings and errors to theirs; each rank
// writes all messages to its file OUTPUT/logs/rank-NNNN.log, with time, host and rank in every line. Files are appended
// to, so a resumed run keeps its history. During its lifetime, a Log is the target of lockstep::log(). Throws Error if
// the file cannot be written. Any thread may log.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"
#include "lockstep/train/report/console.h"

namespace lockstep::train {

struct LogOptions {
  std::filesystem::path output;  // the run's folder; empty: no file
  int rank = 0;
  std::string host{};
  bool quiet = false;       // true: only warnings and errors go to the console
  std::FILE* out = stdout;  // the console's streams; not owned
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
  bool talks() const { return talks_; }  // information goes to the console (rank 0 without --quiet)
  void to_file(std::string_view text);   // writes information only to the file

 private:
  class FileSink;

  std::filesystem::path file_;
  bool talks_;
  std::shared_ptr<Console> console_;  // shared with the sink: the logger may outlive the Log
  std::shared_ptr<FileSink> file_sink_;
  std::shared_ptr<spdlog::logger> file_logger_, logger_, previous_;
};

}  // namespace lockstep::train
