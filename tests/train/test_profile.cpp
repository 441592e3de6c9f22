// The numbers that a profile makes of measured times: sums, shares, rates against peaks, and a table that fits its
// page.
#include "lockstep/train/report/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace lockstep::train {
namespace {

// 10 steps of 10 ms; 3 nodes that take 8 ms of each, a part of 1 ms, and 1 ms that nobody claims.
Profile example() {
  Profile profile{.steps = 10,
                  .seconds = 0.1,
                  .threads = 2,
                  .peaks = {.f32_flops = 100e9, .bf16_flops = 0, .bytes = 10e9},
                  .nodes = {},
                  .parts = {{"update", 0.01}}};
  profile.nodes.push_back({"layer1", "conv2d", "fast", {10, 0.02, 1e9, 1e7, 0.01}});
  profile.nodes.push_back({"layer2", "conv2d", "fast", {20, 0.03, 1e9, 1e7, 0.01}});
  profile.nodes.push_back({"norm", "batch_norm2d", "native", {10, 0.03, 0, 3e8, 0}});
  return profile;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The words of the first line that begins with `name`, after it.
std::vector<std::string> line_of(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return words(line.substr(name.size()));
  }
  return {};
}

using Words = std::vector<std::string>;

TEST(Profile, AddsUpClassesSlowestFirst) {
  const std::vector<ProfileNode> classes = by_class(example());
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].op, "conv2d");
  EXPECT_DOUBLE_EQ(classes[0].sums.calls, 30);
  EXPECT_DOUBLE_EQ(classes[0].sums.seconds, 0.05);
  EXPECT_DOUBLE_EQ(classes[0].sums.flops, 2e9);
  EXPECT_DOUBLE_EQ(classes[0].sums.bytes, 2e7);
  EXPECT_DOUBLE_EQ(classes[0].sums.flops_at_peak, 0.02);
  EXPECT_EQ(classes[1].op, "batch_norm2d");
}

TEST(Profile, FiguresArePerStepAndAgainstPeaks) {
  const std::string table = profile_table(example());
  // 3 calls and 5 ms of a step's 10; 2 GFLOP in 50 ms are 40 of 100 GFLOP/s, 20 MB are 0.4 of 10 GB/s.
  EXPECT_EQ(line_of(table, "conv2d"), (Words{"3", "5.000", "50.0%", "40.0", "40.0%", "0.4", "4.0%"})) << table;
  // Nothing is said about operations where there are none.
  EXPECT_EQ(line_of(table, "batch_norm2d"), (Words{"1", "3.000", "30.0%", "10.0", "100.0%"})) << table;
  EXPECT_EQ(line_of(table, "layer2"), (Words{"conv2d", "fast", "2", "3.000", "30.0%", "33.3", "33.3%", "0.3", "3.3%"}))
      << table;
}

TEST(Profile, TheStepIsAccountedForInFull) {
  const std::string table = profile_table(example());
  EXPECT_EQ(line_of(table, "update"), (Words{"1.000", "10.0%"})) << table;
  EXPECT_EQ(line_of(table, "other"), (Words{"1.000", "10.0%"})) << table;
  EXPECT_NE(table.find("10 steps of 10.000 ms"), std::string::npos) << table;
}

TEST(Profile, TheTableFitsItsPageAndShowsTheSlowest) {
  Profile profile = example();
  for (int i = 0; i < 100; ++i) {
    profile.nodes.push_back({"stage.with.a.long.name.and.block." + std::to_string(i),
                             "convolution_backward_of_weights",
                             "a_library:with_long_names:avx512_core_bf16",
                             {123456, 1e-3, 1e9, 1e9, 0.5e-3}});
  }
  profile.nodes.push_back({"slow", "op", "plain", {10, 0.09, 0, 0, 0}});
  const std::string table = profile_table(profile, 5);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  EXPECT_NE(table.find("the 5 slowest of 104 nodes"), std::string::npos) << table;
  const std::string nodes = table.substr(table.find("the 5 slowest"));
  EXPECT_EQ(std::ranges::count(nodes, '\n'), 6) << nodes;
  EXPECT_LT(nodes.find("slow  "), nodes.find("layer2")) << nodes;
}

// The names of oneDNN begin with the algorithm and end with the instruction set.
TEST(Profile, NamesKeepWhatTellsThemApart) {
  Profile profile = example();
  profile.nodes.clear();
  const auto add = [&](const char* place, const char* op, const char* implementation) {
    profile.nodes.push_back({place, op, implementation, {10, 0.02, 1e9, 1e7, 0.01}});
  };
  add("grad layer4.0.downsample.0", "conv2d_backward_weights", "jit_wino_4x3:avx512_core");
  add("grad layer4.1.downsample.0", "linear_backward_weights", "jit_1x1:avx512_core");
  add("again layer4.0.downsample.1", "batch_norm2d_gradient", "brgconv:avx512_core_bf16_amx_bf16");
  std::istringstream lines(profile_table(profile));
  std::vector<Words> rows;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120U) << line;
    if (line.starts_with("grad ") || line.starts_with("again ")) rows.push_back(words(line));
  }
  ASSERT_EQ(rows.size(), 3U);
  const auto expect = [&](std::size_t row, std::size_t word, const std::string& begin, const std::string& end) {
    const std::string& name = rows[row][word];
    EXPECT_TRUE(name.starts_with(begin) && name.ends_with(end)) << name;
  };
  expect(0, 1, "layer4.0", ".downsample.0");
  expect(1, 1, "layer4.1", ".downsample.0");
  expect(0, 2, "conv2d_", "_weights");
  expect(1, 2, "linear_", "_weights");
  expect(2, 2, "batch_", "gradient");
  expect(0, 3, "jit_wino_4x3:", "");
  expect(1, 3, "jit_1x1:", "core");
  expect(2, 3, "brgconv:", "_bf16");
}

TEST(Profile, NamesThatFitAreWhole) {
  Profile profile = example();
  profile.nodes[0].implementation = "jit_wino_4x3:avx512_core_with_more_to_say";
  EXPECT_EQ(line_of(profile_table(profile), "layer1")[1], profile.nodes[0].implementation);
}

TEST(Profile, WithoutAStepThereIsAnExplanation) {
  EXPECT_NE(profile_table(Profile{}).find("no step was measured"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
