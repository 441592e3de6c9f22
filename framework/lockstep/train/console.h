// What one process writes to its console: lines, errors, and on a terminal a status line that stays below them. It is
// redrawn with carriage returns and spaces; the one escape code, "erase below", is for a terminal that has become
// narrower. What a terminal would not show as text is written out (core/printable.h). Any thread may call it.
#pragma once

#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace lockstep::train {

struct ConsoleOptions {
  std::FILE* out = stdout;  // lines and status; not owned
  std::FILE* err = stderr;  // errors, where there is no status line; not owned
  std::function<int()>
      columns{};  // the terminal's width; empty where `out` is no terminal: then there is no status line
};

class Console {
 public:
  explicit Console(ConsoleOptions options) : options_(std::move(options)) {}
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
  ConsoleOptions options_;
  std::mutex mutex_;
  std::string status_;
  std::size_t drawn_ = 0;  // columns that the status line takes on the screen
};

}  // namespace lockstep::train
