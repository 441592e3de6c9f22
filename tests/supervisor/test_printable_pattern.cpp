#include "tools/supervisor/printable_pattern.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

namespace lockstep::supervisor {
namespace {

TEST(PrintablePattern, WritesOutWhatATerminalWouldObey) {
  std::ostringstream text;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(text);
  sink->set_formatter(printable_pattern("run: %V"));
  spdlog::logger log("test", sink);
  log.info("host {} has answered", "node\x1b[2J\xff");
  EXPECT_EQ(text.str(), "run: host node\\x1b[2J\\xff has answered\n");
}

}  // namespace
}  // namespace lockstep::supervisor
