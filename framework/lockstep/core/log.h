// The log of the library. Until a program installs a logger, warnings and errors go to stderr and other messages are
// dropped; the environment variable LOCKSTEP_LOG_LEVEL (a name of parse_log_level()) sets another lowest level. The log
// is not in spdlog's registry, so it does not change a caller's default logger. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/core/format.h"

namespace spdlog {
class logger;
}

namespace lockstep {

// The levels of messages, in rising order. Off is the lowest level of a log that takes no message; no message has it.
enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warning, Error, Off };

// Returns the name of a level: "trace", "debug", "info", "warning", "error", "off".
std::string_view name_of(LogLevel level);
// Returns the level of that name; empty: there is none.
std::optional<LogLevel> parse_log_level(std::string_view name);

// A handle to a logger. A message is formatted only if the logger takes its level.
class Logger {
 public:
  explicit Logger(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

  template <class... Args>
  void trace(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) const {
    write(LogLevel::Trace, format.text(), {args...});
  }
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
