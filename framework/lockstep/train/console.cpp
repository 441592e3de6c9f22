#include "lockstep/train/console.h"

#include <fmt/format.h>

#include <algorithm>

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
  put(stream, fmt::format("{}\n", text));  // one write, so that lines of several processes do not mix
  std::fflush(stream);
  if (!status_.empty()) show();
}

void Console::hide() {
  if (drawn_ == 0) return;
  put(options_.out, fmt::format("\r{:{}}\r", "", drawn_));
  std::fflush(options_.out);
  drawn_ = 0;
}

void Console::show() {
  // A line as wide as the terminal would wrap on some, and then not be where the carriage return goes.
  const std::size_t width = static_cast<std::size_t>(std::max(0, columns() - 1));
  const std::string_view text = std::string_view(status_).substr(0, width);
  put(options_.out, fmt::format("\r{:{}}", text, std::min(width, std::max(drawn_, text.size()))));
  if (text.size() < drawn_) put(options_.out, fmt::format("\r{}", text));
  std::fflush(options_.out);
  drawn_ = text.size();
}

}  // namespace lockstep::train
