#include "lockstep/core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <unistd.h>

#include <mutex>
#include <utility>

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

// A watchdog may end the process, and a guard may skip an update: the user must see the reason.
std::shared_ptr<spdlog::logger> to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<PatientStderr>());
  logger->set_level(spdlog::level::warn);
  logger->set_pattern("lockstep: %l: %v");
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

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

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
