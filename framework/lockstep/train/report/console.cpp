#include "lockstep/train/report/console.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "lockstep/core/printable.h"

namespace lockstep::train {
namespace {

// Flushes text that the program printed by stdio first, unless that would block.
void flush_if_taken(std::FILE* stream) {
  pollfd file{fileno(stream), POLLOUT, 0};
  if (poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0) std::fflush(stream);
}

}  // namespace

Console::Console(ConsoleOptions options)
    : options_(std::move(options)),
      out_(fileno(options_.out), options_.writer),
      err_(fileno(options_.err), options_.writer) {}

Console::~Console() {
  const std::lock_guard lock(mutex_);
  hide();
  if (!stuck_) return;
  // Tries once more to write waiting lines: a reader may have returned.
  const bool out = out_.flush(options_.writer.patience), err = err_.flush(std::chrono::milliseconds(0));
  const auto waiting = static_cast<std::int64_t>((out ? 0 : out_.pieces_waiting()) + (err ? 0 : err_.pieces_waiting()));
  if (dropped_ + waiting > 0)
    tell(fmt::format("the console did not accept {} lines, which are only in this file", dropped_ + waiting));
}

StreamWriter& Console::writer_of(std::FILE* stream) { return stream == options_.out ? out_ : err_; }

// Ignores a failed write: training goes on without a console (a closed pipe, for example).
StreamWriter::Result Console::put(std::FILE* stream, std::string_view text) {
  flush_if_taken(stream);
  return writer_of(stream).write(text);
}

void Console::tell(const std::string& text) const {
  if (options_.tell) options_.tell(text);
}

void Console::line(std::string_view text) { write_line(options_.out, text); }

void Console::error_line(std::string_view text) {
  // mpirun forwards the two streams separately, and an error that arrives late would appear inside the status line.
  write_line(has_status() ? options_.out : options_.err, text);
}

void Console::status(std::string_view text) {
  if (!has_status()) return;
  const std::lock_guard lock(mutex_);
  status_ = text;
  if (out_.pieces_waiting() > 0) return;  // skips this status line; the next one replaces it
  status_.empty() ? hide() : show();
}

void Console::write_line(std::FILE* stream, std::string_view text) {
  const std::lock_guard lock(mutex_);
  hide();
  if (stuck_ && out_.pieces_waiting() == 0 && err_.pieces_waiting() == 0) {
    stuck_ = false;
    const std::int64_t lost = std::exchange(dropped_, 0);
    tell(fmt::format("the console accepts text again; {} lines are missing there, which are in this file", lost));
    if (lost > 0)
      put(stream,
          fmt::format("({} lines are missing here, because no process read them; the log file has them)\n", lost));
  }
  count(put(stream,
            fmt::format("{}\n", printable_lines(text))));  // one write, so that lines of several processes do not mix
  if (!status_.empty() && !stuck_) show();
}

void Console::count(StreamWriter::Result result) {
  if (result == StreamWriter::Result::Written) return;
  if (result == StreamWriter::Result::Dropped) ++dropped_;
  if (!std::exchange(stuck_, true))
    tell(
        "the console accepts no text: no process reads this program's output; training goes on, and this file has "
        "every line");
}

// Erases the status line; the cursor is at its start. A terminal that has become narrower may have wrapped the line:
// then erases everything below as well.
void Console::hide() {
  if (drawn_ == 0 || out_.pieces_waiting() > 0) return;
  put(options_.out, drawn_ < room() ? fmt::format("\r{:{}}\r", "", drawn_) : "\r\x1b[J");
  drawn_ = 0;
}

// Draws the status line and moves the cursor back to its start, where a terminal leaves it when it wraps the line.
void Console::show() {
  if (drawn_ >= room()) hide();
  const std::string text = printable(status_).substr(0, room() - 1);
  put(options_.out, fmt::format("\r{:{}}\r", text, std::max(drawn_, text.size())));
  drawn_ = text.size();
}

// Returns the usable columns: a line as wide as the terminal would wrap on some terminals.
std::size_t Console::room() const { return static_cast<std::size_t>(std::max(1, columns())); }

}  // namespace lockstep::train
