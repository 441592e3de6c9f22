#include "lockstep/launch/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/launch/master_settings.h"
#include "tests/messages.h"

namespace lockstep::launch {
namespace {

MasterSettings master(const std::string& text) { return master_settings(Settings::of_text(text, "job")); }

TEST(Settings, OfAFileAndTheEnvironment) {
  const Settings file = Settings::of_text("# mine\nexport A='x y'\n  B=\"2\"\nC=\n", "job");
  EXPECT_EQ(file.find("A")->value, "x y");
  EXPECT_EQ(file.find("A")->origin, "job:2: A");
  EXPECT_EQ(file.number("B", 1, 9), 2);
  EXPECT_EQ(file.find("C"), nullptr);
  EXPECT_EQ(file.number("D", 1, 9), std::nullopt);
  ASSERT_EQ(setenv("LOCKSTEP_TEST_SETTING", "7", 1), 0);
  EXPECT_EQ(Settings::of_environment().number("LOCKSTEP_TEST_SETTING", 0, 9), 7);
  EXPECT_EQ(Settings::of_environment().find("LOCKSTEP_TEST_SETTING")->origin,
            "LOCKSTEP_TEST_SETTING in the environment");
}

TEST(Settings, WhatIsWrongIsSaidWithItsLine) {
  const auto error = [](const std::string& text) { return error_of([&] { Settings::of_text(text, "job"); }); };
  EXPECT_EQ(error("A=1\nA B=2\n"), "[settings] job:2: 'A B=2', expected NAME=VALUE without blanks around '='");
  EXPECT_EQ(error("A=1\n\nA=2\n"), "[settings] job:3: A is set in job:1: A already, expected once");
  for (const char* text : {"A\n", "=1\n", "A =1\n", "A=\xff\n", "A=1\r\n"})
    EXPECT_NE(error(text).find("[settings] job:1: "), std::string::npos) << text;
  EXPECT_EQ(error_of([] { Settings::of_text("A=12x\n", "job").number("A", 1, 9); }),
            "[settings] job:1: A is '12x', expected a number from 1 to 9");
}

TEST(MasterSettings, AreRead) {
  const MasterSettings two = master(
      "MASTER_ADDR=10.1.0.1\nMASTER_PORT=12345\nNNODES=2\nNODE_RANK=1\nNPROC_PER_NODE=8\n"
      "WORLD_SIZE=16\n");
  EXPECT_EQ(two.address, "10.1.0.1");
  EXPECT_EQ(two.port, 12345);
  EXPECT_EQ(two.nodes, 2);
  EXPECT_EQ(two.node_rank, 1);
  EXPECT_EQ(two.ranks_per_node, 8);
  const MasterSettings one = master("MASTER_ADDR=[fd00::1]\nLOCAL_WORLD_SIZE=4\nGROUP_RANK=0\n");
  EXPECT_EQ(one.address, "fd00::1");
  EXPECT_EQ(one.port, kDefaultMasterPort);
  EXPECT_EQ(one.nodes, 1);
  EXPECT_EQ(one.node_rank, 0);
  EXPECT_EQ(one.ranks_per_node, 4);
}

TEST(MasterSettings, WhatDisagreesIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"NNODES=2\n", "MASTER_ADDR is not set, expected the name or address of rank 0's host"},
      {"MASTER_ADDR=a\nMASTER_PORT=0\n", "job:2: MASTER_PORT is '0', expected a number from 1 to 65535"},
      {"MASTER_ADDR=a\nNNODES=1:4\n", "job:2: NNODES is '1:4', expected a number from 1 to 65536"},
      {"MASTER_ADDR=a\nNNODES=2\nNODE_RANK=2\n", "job:3: NODE_RANK is 2 and NNODES is 2, expected a rank from 0 to 1"},
      {"MASTER_ADDR=a\nNNODES=2\nNPROC_PER_NODE=8\nWORLD_SIZE=8\n",
       "job:4: WORLD_SIZE is 8, but NNODES x NPROC_PER_NODE is 2 x 8 = 16; expected the same"},
      {"MASTER_ADDR=a\nNPROC_PER_NODE=8\nLOCAL_WORLD_SIZE=4\n",
       "job:3: LOCAL_WORLD_SIZE is 4, but NPROC_PER_NODE is 8; expected the same"},
      {"MASTER_ADDR=me@a\n", "job:1: MASTER_ADDR is 'me@a', expected a name or address without a user"}};
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(error_of([&, text = text] { master(text); }), "[settings] " + expected) << text;
}

}  // namespace
}  // namespace lockstep::launch
