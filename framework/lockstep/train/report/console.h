// What one process writes to its console: lines, errors, and on a terminal a status line that stays below them. It is
// redrawn with carriage returns and spaces; the one escape code, "erase below", is for a terminal that has become
// narrower. What a terminal would not show as text is written out (core/printable.h). Any thread may call it.
// A stream that nobody reads holds training up once, for a second; then lines wait, and those for which there is no
// room are dropped, counted, and the log is told (ConsoleOptions::tell).
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
  std::FILE* err = stderr;  // errors, where there is no status line; not owned
  std::function<int()>
      columns{};  // the terminal's width; empty where `out` is no terminal: then there is no status line
  // Is called with a sentence for the log file when the console takes no text, takes some again, or lost some.
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
  void status(std::string_view text);  // ASCII; replaces the one before, cut to the width; empty takes it away

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
  bool stuck_ = false;        // a line waits, or was dropped, since the console took all that there was
  std::int64_t dropped_ = 0;  // lines, since then
  std::string status_;
  std::size_t drawn_ = 0;  // columns that the status line takes on the screen
};

}  // namespace lockstep::train
