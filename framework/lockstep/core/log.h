// The log of the library. Until a program installs a logger, warnings and errors go to stderr and other messages are
// dropped. The log is not in spdlog's registry, so it does not change a caller's default logger. Any thread may call
// these functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "lockstep/core/format.h"

namespace spdlog {
class logger;
}

namespace lockstep {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };

// A handle to a logger. A message is formatted only if the logger takes its level.
class Logger {
 public:
  explicit Logger(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

  template <class... Args>
  void debug(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) const {
    write(LogLevel::Debug, format.text(), {args...});
  }
  template <class... Args>
  void info(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) const {
    write(LogLevel::Info, format.text(), {args...});
  }
  template <class... Args>
  void warn(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) const {
    write(LogLevel::Warning, format.text(), {args...});
  }
  template <class... Args>
  void error(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) const {
    write(LogLevel::Error, format.text(), {args...});
  }
  bool should_log(LogLevel level) const;
  const Logger* operator->() const { return this; }

 private:
  void write(LogLevel level, std::string_view format, std::initializer_list<FormatArgument> arguments) const;

  std::shared_ptr<spdlog::logger> logger_;  // never null
};

// Returns the present logger: `lockstep::log()->warn("[loader] record {} is empty", n)`.
Logger log();

// Installs a logger, or silence for null, and returns the logger that was installed before.
std::shared_ptr<spdlog::logger> install_log(std::shared_ptr<spdlog::logger> logger);

}  // namespace lockstep
