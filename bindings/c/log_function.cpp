#include "bindings/c/log_function.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>

#include "bindings/c/failure.h"
#include "lockstep/core/log.h"

namespace lockstep::bindings {
namespace {

// Passes messages to a function of the program.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FunctionSink(lockstep_log_function function, void* user) : function_(function), user_(user) {}

 private:
  static int level_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return LOCKSTEP_LOG_ERROR;
    return level == spdlog::level::warn ? LOCKSTEP_LOG_WARNING : LOCKSTEP_LOG_INFO;
  }
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text(message.payload.data(), message.payload.size());
    function_(level_of(message.level), text.c_str(), user_);
  }
  void flush_() override {}

  lockstep_log_function function_;
  void* user_;
};

spdlog::level::level_enum level_of(int least) {
  if (least == LOCKSTEP_LOG_INFO) return spdlog::level::info;
  if (least == LOCKSTEP_LOG_WARNING) return spdlog::level::warn;
  if (least == LOCKSTEP_LOG_ERROR) return spdlog::level::err;
  throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                   formatted("[log] the level is {}, expected LOCKSTEP_LOG_INFO, _WARNING or _ERROR", least));
}

}  // namespace

void set_log_function(lockstep_log_function function, int least, void* user) {
  static std::shared_ptr<spdlog::logger> first;  // the log before the first function
  static bool replaced = false;
  if (function == nullptr) {
    if (replaced) install_log(first);
    replaced = false;
    return;
  }
  auto logger = std::make_shared<spdlog::logger>("lockstep_c", std::make_shared<FunctionSink>(function, user));
  logger->set_level(level_of(least));
  std::shared_ptr<spdlog::logger> before = install_log(std::move(logger));
  if (!replaced) first = std::move(before);
  replaced = true;
}

}  // namespace lockstep::bindings
