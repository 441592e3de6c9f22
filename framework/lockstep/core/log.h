// The library's own logger. Until a program installs one, warnings and errors go to stderr and nothing else is said. It
// is no part of spdlog's registry, so a caller's default logger and stdout stay theirs. Any thread may call these.
#pragma once

#include <spdlog/logger.h>

#include <memory>

namespace lockstep {

// Never null. `lockstep::log()->warn("[loader] record {} is empty", n)`.
std::shared_ptr<spdlog::logger> log();

// Replaces the logger, null for silence, and returns the one before.
std::shared_ptr<spdlog::logger> install_log(std::shared_ptr<spdlog::logger> logger);

}  // namespace lockstep
