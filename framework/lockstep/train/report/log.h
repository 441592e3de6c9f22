// Where a run's messages go: rank 0's to its console, warnings and errors of all ranks to theirs, everything to one
// file per rank, OUTPUT/logs/rank-NNNN.log, with time, host and rank in every line. Files are appended to, so a resumed
// run keeps its history. While a Log lives, lockstep::log() is it. Throws Error where the file cannot be written.
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
  bool quiet = false;       // console: warnings and errors only
  std::FILE* out = stdout;  // the console's streams; not owned
  std::FILE* err = stderr;
  std::function<int()> columns{};              // width of the terminal; empty: `out` is asked whether it is one
  StreamWriterOptions writer{};                // how long the console's reader is waited for
  std::shared_ptr<const io::Folder> folder{};  // `output`, of a caller that holds it open
};

class Log {
 public:
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const std::filesystem::path& file() const { return file_; }
  bool exists() const;    // whether the file that is open has a name, this one or another
  bool in_place() const;  // whether it is still there, under its own name
  // If the file that is open is not the one in the folder `output`, where the run writes now, it is opened anew there,
  // and a warning says so. Throws Error; then it stays as it was.
  void follow(const io::Folder& output);
  Console& console() { return *console_; }
  bool talks() const { return talks_; }  // whether information goes to the console: rank 0, not quiet
  void to_file(std::string_view text);   // information for the file alone

 private:
  class FileSink;

  std::filesystem::path file_;
  bool talks_;
  std::shared_ptr<Console> console_;  // shared with the sink: somebody may still hold the logger when the Log has gone
  std::shared_ptr<FileSink> file_sink_;
  std::shared_ptr<spdlog::logger> file_logger_, logger_, previous_;
};

}  // namespace lockstep::train
