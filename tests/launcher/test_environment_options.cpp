// Torchrun's variables in the place of options of `lockstep launch`.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "tests/launcher/helpers.h"
#include "tools/launcher/environment_options.h"

namespace lockstep::launcher {
namespace {

LaunchOptions read(LaunchOptions options, const std::map<std::string, std::string>& environment) {
  read_environment(options, [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
  return options;
}

TEST(EnvironmentOptions, StandForOptionsThatWereNotSaid) {
  const LaunchOptions o = read(
      {.ranks_per_node = ""},
      {{"NNODES", "4"}, {"NODE_RANK", "3"}, {"NPROC_PER_NODE", "auto"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1234"}});
  EXPECT_EQ(o.nodes, 4);
  EXPECT_EQ(o.node, 3);
  EXPECT_EQ(o.ranks_per_node, "auto");
  EXPECT_EQ(o.meeting.address, "a");
  EXPECT_EQ(o.meeting.port, 1234);
}

TEST(EnvironmentOptions, NothingIsSaid) {
  const LaunchOptions o = read({.ranks_per_node = ""}, {});
  EXPECT_EQ(o.nodes, 0);
  EXPECT_EQ(o.node, -1);
  EXPECT_EQ(o.ranks_per_node, "1");
  EXPECT_EQ(o.meeting.address, "");
  EXPECT_EQ(o.meeting.port, 0);
}

TEST(EnvironmentOptions, TheCommandLineWinsOverAVariableThatCannotBeRead) {
  LaunchOptions said{.nodes = 2, .node = 0, .ranks_per_node = "8"};
  said.meeting.port = 5;
  said.meeting.address = "b";
  const LaunchOptions o = read(
      said,
      {{"NNODES", "two"}, {"NODE_RANK", "x"}, {"NPROC_PER_NODE", "x"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}});
  EXPECT_EQ(o.nodes, 2);
  EXPECT_EQ(o.node, 0);
  EXPECT_EQ(o.ranks_per_node, "8");
  EXPECT_EQ(o.meeting.address, "b");
  EXPECT_EQ(o.meeting.port, 5);
}

TEST(EnvironmentOptions, WhatIsNoNumberIsNamed) {
  const auto message = [](const char* name, const char* text) { return error_of([&] { read({}, {{name, text}}); }); };
  EXPECT_NE(message("NNODES", "two").find("NNODES in the environment is 'two', expected 1 to 100000"),
            std::string::npos)
      << message("NNODES", "two");
  for (const char* wrong : {"0", "1:4", "2x", "99999999999"})
    EXPECT_NE(message("NNODES", wrong).find("NNODES in the environment"), std::string::npos) << wrong;
  EXPECT_NE(message("NODE_RANK", "-1").find("is '-1', expected 0 to 99999"), std::string::npos);
  EXPECT_NE(message("MASTER_PORT", "70000").find("is '70000', expected 1 to 65535"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::launcher
