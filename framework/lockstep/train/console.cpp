#include "lockstep/train/console.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/printable.h"

namespace lockstep::train {
namespace {

// A console that is gone (a closed pipe, say) is no reason to end the training, so results are not looked at.
void put(std::FILE* stream, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); }

}  // namespace

Console::~Console() {
  const std::lock_guard lock(mutex_);
  hide();
  std::fflush(options_.out);
}

void Console::line(std::string_view text) { write_line(options_.out, text); }

void Console::error_line(std::string_view text) {
  // mpirun forwards the two streams apart from each other, and an error that arrives late would land in the status
  // line.
  write_line(has_status() ? options_.out : options_.err, text);
}

void Console::status(std::string_view text) {
  if (!has_status()) return;
  const std::lock_guard lock(mutex_);
  status_ = text;
  status_.empty() ? hide() : show();
}

void Console::write_line(std::FILE* stream, std::string_view text) {
  const std::lock_guard lock(mutex_);
  hide();
  put(stream, fmt::format("{}\n", printable_lines(text)));  // one write, so that lines of several processes do not mix
  std::fflush(stream);
  if (!status_.empty()) show();
}

// From the begin of the line on, where the cursor is. A terminal that has become narrower since may have wrapped the
// line, so that it goes on below: then all that follows is erased.
void Console::hide() {
  if (drawn_ == 0) return;
  put(options_.out, drawn_ < room() ? fmt::format("\r{:{}}\r", "", drawn_) : "\r\x1b[J");
  std::fflush(options_.out);
  drawn_ = 0;
}

// The cursor goes back to the begin: a terminal that wraps the line when it becomes narrower leaves it there.
void Console::show() {
  if (drawn_ >= room()) hide();
  const std::string text = printable(status_).substr(0, room() - 1);
  put(options_.out, fmt::format("\r{:{}}\r", text, std::max(drawn_, text.size())));
  std::fflush(options_.out);
  drawn_ = text.size();
}

// Columns; a line as wide as the terminal would wrap on some.
std::size_t Console::room() const { return static_cast<std::size_t>(std::max(1, columns())); }

}  // namespace lockstep::train
