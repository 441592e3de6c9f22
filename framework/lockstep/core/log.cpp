#include "lockstep/core/log.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <utility>

namespace lockstep {
namespace {

std::shared_ptr<spdlog::logger> silent() {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<spdlog::sinks::null_sink_mt>());
  logger->set_level(spdlog::level::off);
  return logger;
}

// A watchdog may end the process, and a guard skip an update: nobody is to wonder why.
std::shared_ptr<spdlog::logger> to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>());
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

}  // namespace

std::shared_ptr<spdlog::logger> log() {
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  return c.logger;
}

std::shared_ptr<spdlog::logger> install_log(std::shared_ptr<spdlog::logger> logger) {
  if (logger == nullptr) logger = silent();
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  return std::exchange(c.logger, std::move(logger));
}

}  // namespace lockstep
