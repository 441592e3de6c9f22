#include "lockstep/core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "lockstep/core/printable.h"
#include "lockstep/core/stream_writer.h"

namespace lockstep {
namespace {

std::shared_ptr<spdlog::logger> silent() {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<spdlog::sinks::null_sink_mt>());
  logger->set_level(spdlog::level::off);
  return logger;
}

// A pipe without a reader delays neither training nor the watchdog that ends it.
class PatientStderr : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!writer_) writer_ = std::make_unique<StreamWriter>(STDERR_FILENO);
    writer_->write({line.data(), line.size()});
  }
  void flush_() override {}
  std::unique_ptr<StreamWriter> writer_;
};

struct NamedLevel {
  LogLevel level;
  std::string_view name;
  spdlog::level::level_enum number;
};
constexpr std::array kLevels{NamedLevel{LogLevel::Trace, "trace", spdlog::level::trace},
                             NamedLevel{LogLevel::Debug, "debug", spdlog::level::debug},
                             NamedLevel{LogLevel::Info, "info", spdlog::level::info},
                             NamedLevel{LogLevel::Warning, "warning", spdlog::level::warn},
                             NamedLevel{LogLevel::Error, "error", spdlog::level::err},
                             NamedLevel{LogLevel::Off, "off", spdlog::level::off}};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  return std::ranges::find(kLevels, level, &NamedLevel::level)->number;
}

// A watchdog may end the process, and a guard may skip an update: the user must see the reason.
std::shared_ptr<spdlog::logger> to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<PatientStderr>());
  logger->set_pattern("lockstep: %l: %v");
  logger->set_level(spdlog::level::warn);
  const char* wanted = std::getenv("LOCKSTEP_LOG_LEVEL");
  if (wanted == nullptr || *wanted == '\0') return logger;
  if (const auto level = parse_log_level(wanted)) {
    logger->set_level(spdlog_level(*level));
  } else {
    logger->warn("LOCKSTEP_LOG_LEVEL is '{}', expected one of trace, debug, info, warning, error, off",
                 printable(wanted));
  }
  return logger;
}

struct Current {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = to_stderr();
};
Current& current() {
  static Current* instance = new Current;  // never destroyed: other statics may log while they are
  return *instance;
}

}  // namespace

std::string_view name_of(LogLevel level) { return std::ranges::find(kLevels, level, &NamedLevel::level)->name; }

std::optional<LogLevel> parse_log_level(std::string_view name) {
  const auto found = std::ranges::find(kLevels, name, &NamedLevel::name);
  return found == kLevels.end() ? std::nullopt : std::optional(found->level);
}

bool Logger::should_log(LogLevel level) const { return logger_->should_log(spdlog_level(level)); }

void Logger::write(LogLevel level, std::string_view format, std::initializer_list<FormatArgument> arguments) const {
  if (should_log(level)) logger_->log(spdlog_level(level), format_arguments(format, arguments));
}

Logger log() {
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  return Logger(c.logger);
}

std::shared_ptr<spdlog::logger> install_log(std::shared_ptr<spdlog::logger> logger) {
  if (logger == nullptr) logger = silent();
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  return std::exchange(c.logger, std::move(logger));
}

}  // namespace lockstep
