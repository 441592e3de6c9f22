#include "tools/supervisor/console.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "lockstep/core/printable.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"
#include "tools/supervisor/printable_pattern.h"

namespace lockstep::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto kUnread = 10s;  // after which a stream counts as not read at all
// For what is still to be read when the supervisor ends: as long as the reader goes on, and altogether.
constexpr auto kFarewell = 3s, kLongestFarewell = 30s;
// The supervisor waits for no single line.
constexpr StreamWriterOptions kNoWait{.patience = 0ms, .room = 1 << 18};

const char* name_of(Console::Stream stream) { return stream == Console::Stream::Output ? "stdout" : "stderr"; }

class WriterSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit WriterSink(StreamWriter& writer) : writer_(writer) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    writer_.write(fmt::format("lockstep run: {}\n", printable_lines(text)));
  }
  void flush_() override {}

 private:
  StreamWriter& writer_;
};

// Appends to a regular file, which no child inherits.
class FileSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FileSink(const std::filesystem::path& path) : file_(io::open_own_file(path, io::FileUse::Append, "run")) {
    set_formatter(printable_pattern("%Y-%m-%d %H:%M:%S.%e %l: %V"));
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // A full disk is no reason to leave the job alone; stderr has the line as well.
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), line.data(), line.size());
  }
  void flush_() override {}

 private:
  io::FileDescriptor file_;
};

}  // namespace

Console::Console(const std::filesystem::path& log)
    : out_(STDOUT_FILENO, kNoWait),
      err_(STDERR_FILENO, kNoWait),
      log_(std::make_shared<spdlog::logger>("supervisor")),
      file_(std::make_shared<spdlog::logger>("supervisor")) {
  move_log(log);
}

void Console::move_log(const std::filesystem::path& log) {
  const auto to_file = std::make_shared<FileSink>(log);
  file_->sinks() = {to_file};
  log_->sinks() = {std::make_shared<WriterSink>(err_), to_file};
}

Console::~Console() {
  for (const Stream stream : {Stream::Output, Stream::Errors}) {
    StreamWriter& writer = this->writer(stream);
    const auto until = std::chrono::steady_clock::now() + kLongestFarewell;
    while (writer.stuck_for() < kFarewell && std::chrono::steady_clock::now() < until && !writer.flush(100ms)) {
    }
    if (!writer.flush(0ms)) file_->warn("{} is not read; at its end: {}", name_of(stream), writer.text_waiting());
  }
}

bool Console::takes(Stream stream) const {
  const StreamWriter& writer = stream == Stream::Output ? out_ : err_;
  return writer.has_room() || writer.stuck_for() > kUnread;
}

void Console::pass(Stream stream, std::string_view text) {
  if (text.empty() || writer(stream).write(text) != StreamWriter::Result::Dropped) return;
  file_->warn("{} is not read; the job says there: {}", name_of(stream), text);
}

}  // namespace lockstep::supervisor
