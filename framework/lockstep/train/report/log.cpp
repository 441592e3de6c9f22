#include "lockstep/train/report/log.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/report/terminal.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// Splits a message of several lines: each line of the log has its own time, host and rank.
template <class Write>
void each_line(spdlog::string_view_t payload, Write write) {
  std::string_view text(payload.data(), payload.size());
  while (true) {
    const std::size_t end = text.find('\n');
    write(text.substr(0, end));
    if (end == std::string_view::npos || end + 1 == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

const char* name_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return "trace";
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warning";
    case spdlog::level::err:
    case spdlog::level::critical:
      return "error";
    default:
      return "info";
  }
}

class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ConsoleSink(std::shared_ptr<Console> console, std::string prefix)
      : console_(std::move(console)), prefix_(std::move(prefix)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    each_line(message.payload, [&](std::string_view line) {
      if (message.level >= spdlog::level::warn) {
        console_->error_line(fmt::format("{}{}: {}", prefix_, name_of(message.level), line));
      } else if (message.level < spdlog::level::info) {
        console_->line(fmt::format("{}{}: {}", prefix_, name_of(message.level), line));
      } else {
        console_->line(fmt::format("{}{}", prefix_, line));
      }
    });
  }
  void flush_() override {}

 private:
  std::shared_ptr<Console> console_;
  std::string prefix_;
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  static_assert(static_cast<int>(LogLevel::Trace) == spdlog::level::trace &&
                static_cast<int>(LogLevel::Error) == spdlog::level::err);
  return level == LogLevel::Off ? spdlog::level::off : static_cast<spdlog::level::level_enum>(level);
}

// Returns a name for a folder: a host may be called anything.
std::string folder_name(const std::string& host) {
  std::string name = host;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name;
}

fs::path log_file(const LogOptions& options, const std::string& host_folder) {
  if (options.output.empty()) return {};
  return options.output / "logs" / host_folder / fmt::format("rank-{:04}.log", options.rank);
}

// Makes the folder of a log file whose caller does not hold the output folder open.
std::shared_ptr<const io::Folder> made_output(const fs::path& output, const fs::path& file) {
  const fs::path folder = file.parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, "log", "cannot create {}: {}; expected a writable --output", folder.string(), error.message());
  return std::make_shared<const io::Folder>(output);
}

io::Folder log_folder(const io::Folder& output, const std::string& host_folder) {
  io::Folder logs = output.make("logs");
  return host_folder.empty() ? std::move(logs) : logs.make(host_folder);
}

// Ends the last line of a file that a kill has cut.
void end_last_line(const io::Folder& folder, const std::string& name, const io::FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_size == 0) return;
  const io::FileDescriptor reading = folder.open_file(name, io::FileUse::Read, "log");
  char last = '\n';
  if (::pread(reading.get(), &last, 1, status.st_size - 1) != 1 || last == '\n') return;
  [[maybe_unused]] const ssize_t written = ::write(file.get(), "\n", 1);  // a full disk shows with the next line
}

}  // namespace

class Log::FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(io::FileDescriptor file, std::string origin) : origin_(std::move(origin)) { open(std::move(file)); }

  void open(io::FileDescriptor file) {
    std::unique_ptr<std::FILE, CloseFile> stream(::fdopen(file.get(), "a"));
    check(stream != nullptr, "log", "fdopen: {}", std::strerror(errno));
    file.release();  // the stream closes it
    const std::lock_guard lock(mutex_);
    file_ = std::move(stream);
  }

  int descriptor() {
    const std::lock_guard lock(mutex_);
    return ::fileno(file_.get());
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    using namespace std::chrono;
    const auto milliseconds = duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch()).count() % 1000;
    const std::tm time = fmt::localtime(spdlog::log_clock::to_time_t(message.time));
    std::string text;
    each_line(message.payload, [&](std::string_view line) {
      text += fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03} {} {}: {}\n", time, milliseconds, printable(origin_),
                          name_of(message.level), printable(line));
    });
    // spdlog catches this and reports it on stderr at most once a second: a full disk must not end the training.
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) {
      throw spdlog::spdlog_ex("the log file cannot be written", errno);
    }
  }
  void flush_() override { std::fflush(file_.get()); }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string origin_;  // host and rank
  std::unique_ptr<std::FILE, CloseFile> file_;
};

Log::Log(const LogOptions& options)
    : host_folder_(options.folder_per_host ? folder_name(options.host) : ""),
      file_(log_file(options, host_folder_)),
      talks_(options.rank == 0 && !options.quiet && options.level <= LogLevel::Info) {
  if (!file_.empty()) {
    const auto output = options.folder ? options.folder : made_output(options.output, file_);
    file_sink_ = std::make_shared<FileSink>(open_file(*output), fmt::format("{} rank {}", options.host, options.rank));
    file_logger_ = std::make_shared<spdlog::logger>("lockstep", file_sink_);
    file_logger_->set_level(spdlog_level(options.level));
  }
  ConsoleOptions console{.out = options.out, .err = options.err, .columns = options.columns};
  if (!console.columns && talks_) {
    const auto terminal = std::make_shared<Terminal>(options.out);
    if (terminal->present()) console.columns = [terminal] { return terminal->columns(); };
  }
  if (!talks_) console.columns = nullptr;
  console.tell = [file = file_logger_](const std::string& text) {
    if (file != nullptr) file->warn("{}", text);
  };
  console.writer = options.writer;
  console_ = std::make_shared<Console>(std::move(console));

  const std::string prefix = options.rank == 0 ? "" : fmt::format("[{} rank {}] ", options.host, options.rank);
  const auto console_sink = std::make_shared<ConsoleSink>(console_, prefix);
  console_sink->set_level(talks_ ? spdlog::level::trace : spdlog::level::warn);
  logger_ = std::make_shared<spdlog::logger>("lockstep", console_sink);
  logger_->set_level(spdlog_level(options.level));
  if (file_sink_ != nullptr) logger_->sinks().push_back(file_sink_);
  previous_ = install_log(logger_);
}

Log::~Log() { install_log(previous_); }

io::FileDescriptor Log::open_file(const io::Folder& output) const {
  const io::Folder folder = log_folder(output, host_folder_);
  const std::string name = file_.filename().string();
  io::FileDescriptor file = folder.open_file(name, io::FileUse::Append, "log");
  end_last_line(folder, name, file);
  return file;
}

bool Log::exists() const {
  struct stat held {};
  return file_sink_ == nullptr || ::fstat(file_sink_->descriptor(), &held) != 0 || held.st_nlink > 0;
}

bool Log::in_place() const {
  if (file_sink_ == nullptr) return true;
  struct stat held {
  }, found{};
  if (::fstat(file_sink_->descriptor(), &held) != 0) return errno != ESTALE;
  if (::lstat(file_.c_str(), &found) != 0) return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

void Log::follow(const io::Folder& output) {
  if (file_sink_ == nullptr) return;
  const std::string name = file_.filename().string();
  const io::Folder logs = log_folder(output, host_folder_);
  if (logs.holds(name, file_sink_->descriptor())) return;
  file_sink_->open(open_file(output));
  const fs::path before = std::exchange(file_, logs.path() / name);
  logger_->warn("[log] {} was removed or replaced during the run; further lines go to {}", before.string(),
                file_.string());
}

void Log::to_file(std::string_view text) {
  if (file_logger_ != nullptr) file_logger_->info("{}", text);
}

}  // namespace lockstep::train
