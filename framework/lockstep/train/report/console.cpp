#include "lockstep/train/report/console.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "lockstep/core/printable.h"

namespace lockstep::train {
namespace {

// What a program has printed by stdio comes first, unless it would have to wait for a reader.
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
  // The last chance of lines that wait: a reader that is back takes them now.
  const bool out = out_.flush(options_.writer.patience), err = err_.flush(std::chrono::milliseconds(0));
  const auto waiting = static_cast<std::int64_t>((out ? 0 : out_.pieces_waiting()) + (err ? 0 : err_.pieces_waiting()));
  if (dropped_ + waiting > 0)
    tell(fmt::format("the console did not take {} lines, which are in this file alone", dropped_ + waiting));
}

StreamWriter& Console::writer_of(std::FILE* stream) { return stream == options_.out ? out_ : err_; }

// A console that is gone (a closed pipe, say) is no reason to end the training, and one that is not read neither.
StreamWriter::Result Console::put(std::FILE* stream, std::string_view text) {
  flush_if_taken(stream);
  return writer_of(stream).write(text);
}

void Console::tell(const std::string& text) const {
  if (options_.tell) options_.tell(text);
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
  if (out_.pieces_waiting() > 0) return;  // the next one is as good
  status_.empty() ? hide() : show();
}

void Console::write_line(std::FILE* stream, std::string_view text) {
  const std::lock_guard lock(mutex_);
  hide();
  if (stuck_ && out_.pieces_waiting() == 0 && err_.pieces_waiting() == 0) {
    stuck_ = false;
    const std::int64_t lost = std::exchange(dropped_, 0);
    tell(fmt::format("the console takes text again; it lacks {} lines, which are in this file", lost));
    if (lost > 0)
      put(stream, fmt::format("({} lines are missing here, as nobody read them; the log file has them)\n", lost));
  }
  count(put(stream,
            fmt::format("{}\n", printable_lines(text))));  // one write, so that lines of several processes do not mix
  if (!status_.empty() && !stuck_) show();
}

void Console::count(StreamWriter::Result result) {
  if (result == StreamWriter::Result::Written) return;
  if (result == StreamWriter::Result::Dropped) ++dropped_;
  if (!std::exchange(stuck_, true))
    tell("the console takes no text: nobody reads what this program prints; it goes on, and this file has every line");
}

// From the begin of the line on, where the cursor is. A terminal that has become narrower since may have wrapped the
// line, so that it goes on below: then all that follows is erased.
void Console::hide() {
  if (drawn_ == 0 || out_.pieces_waiting() > 0) return;
  put(options_.out, drawn_ < room() ? fmt::format("\r{:{}}\r", "", drawn_) : "\r\x1b[J");
  drawn_ = 0;
}

// The cursor goes back to the begin: a terminal that wraps the line when it becomes narrower leaves it there.
void Console::show() {
  if (drawn_ >= room()) hide();
  const std::string text = printable(status_).substr(0, room() - 1);
  put(options_.out, fmt::format("\r{:{}}\r", text, std::max(drawn_, text.size())));
  drawn_ = text.size();
}

// Columns; a line as wide as the terminal would wrap on some.
std::size_t Console::room() const { return static_cast<std::size_t>(std::max(1, columns())); }

}  // namespace lockstep::train
