// The messages of this rank's log while an object lives.
#pragma once

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>

#include "lockstep/core/log.h"

namespace lockstep::test {

class CapturedLog {
 public:
  CapturedLog()
      : before_(install_log(
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)))) {}
  ~CapturedLog() { install_log(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace lockstep::test
