// A pattern of spdlog whose %V is the message as a terminal may show it (core/printable.h): it quotes hosts, paths and
// the words of a job.
#pragma once

#include <spdlog/pattern_formatter.h>

#include <memory>
#include <string>
#include <utility>

#include "lockstep/core/printable.h"

namespace lockstep::supervisor {

class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& into) override {
    const std::string text = printable_lines({message.payload.data(), message.payload.size()});
    into.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

inline std::unique_ptr<spdlog::formatter> printable_pattern(std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('V').set_pattern(std::move(pattern));
  return formatter;
}

}  // namespace lockstep::supervisor
