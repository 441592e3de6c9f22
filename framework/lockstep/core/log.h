// The library's own log. Until a program installs a logger, warnings and errors go to stderr and nothing else is said.
// It is no part of spdlog's registry, so a caller's default logger and stdout stay theirs. Any thread may call these.
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

// A handle of a logger; a message is formatted only if the logger takes its level.
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

// `lockstep::log()->warn("[loader] record {} is empty", n)`.
Logger log();

// Replaces the logger, null for silence, and returns the one before.
std::shared_ptr<spdlog::logger> install_log(std::shared_ptr<spdlog::logger> logger);

}  // namespace lockstep
