// The console output of one process: lines, errors, and on a terminal a status line below them. The status line is
// redrawn with carriage returns and spaces; the only escape code, "erase below", is for a terminal that has become
// narrower. Characters that a terminal cannot show are written as escapes (core/printable.h). Any thread may call it.
// If no process reads the stream, training waits once, for one second. Later lines are kept in memory; lines for which
// there is no memory are dropped and counted, and ConsoleOptions::tell reports that to the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "lockstep/core/stream_writer.h"

namespace lockstep::train {

struct ConsoleOptions {
  std::FILE* out = stdout;  // lines and status; not owned
  std::FILE* err = stderr;  // errors, if there is no status line; not owned
  std::function<int()>
      columns{};  // returns the terminal's width; empty: `out` is not a terminal, and there is no status line
  // Called with a sentence for the log file when the console accepts no text, accepts text again, or has lost text.
  std::function<void(const std::string&)> tell{};
  StreamWriterOptions writer{};
};

class Console {
 public:
  explicit Console(ConsoleOptions options);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool has_status() const { return static_cast<bool>(options_.columns); }
  int columns() const { return options_.columns ? options_.columns() : 0; }
  void line(std::string_view text);
  void error_line(std::string_view text);
  void status(std::string_view text);  // ASCII; replaces the status line, cut to the width; empty removes it

 private:
  void hide();
  void show();
  std::size_t room() const;
  void write_line(std::FILE* stream, std::string_view text);
  StreamWriter& writer_of(std::FILE* stream);
  StreamWriter::Result put(std::FILE* stream, std::string_view text);
  void count(StreamWriter::Result result);
  void tell(const std::string& text) const;
  ConsoleOptions options_;
  std::mutex mutex_;
  StreamWriter out_, err_;
  bool stuck_ = false;        // true: a line waits or was dropped since the console last accepted all text
  std::int64_t dropped_ = 0;  // lines dropped since then
  std::string status_;
  std::size_t drawn_ = 0;  // columns of the status line on the screen
};

}  // namespace lockstep::train
