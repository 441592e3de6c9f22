#include "lockstep/host/placement.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

host::NodePlacement node_of(int node_cores, std::vector<std::vector<int>> masks, int threads) {
  host::NodePlacement node{.host = "node1", .node_cores = node_cores};
  for (std::size_t i = 0; i < masks.size(); ++i)
    node.ranks.push_back({.rank = static_cast<int>(i) + 8, .threads = threads, .cores = masks[i]});
  return node;
}

const std::vector<int> kFour{0, 1, 2, 3};

void expect_sound(const host::NodePlacement& node) {
  EXPECT_TRUE(host::placement_warnings(node).empty()) << host::placement_warnings(node).front().what;
}

void expect_warning(const host::NodePlacement& node, const std::string& text) {
  const std::vector<host::PlacementWarning> warnings = host::placement_warnings(node);
  ASSERT_EQ(warnings.size(), 1u) << describe(node);
  const std::string found = warnings.front().what + "; " + warnings.front().mend;
  EXPECT_EQ(found.substr(0, text.size()), text) << found;
}

TEST(Placement, IsDescribed) {
  EXPECT_EQ(describe(node_of(4, {kFour, kFour}, 2)), "2 ranks x 2 threads on 4 cores, not bound");
  EXPECT_EQ(describe(node_of(4, {{0, 1}, {2, 3}}, 2)), "2 ranks x 2 threads on 4 cores, each bound to 2");
  EXPECT_EQ(describe(node_of(4, {{0}}, 1)), "1 rank x 1 thread on 4 cores, bound to 1, 3 left idle");
  EXPECT_EQ(describe(node_of(4, {{0}, {1, 2, 3}}, 1)), "2 ranks x 1 thread on 4 cores, each bound to 1 to 3");
  host::NodePlacement limited = node_of(4, {kFour}, 2);
  limited.quota = 2.5;
  limited.ranks.push_back({.rank = 9, .threads = 1, .cores = kFour});
  EXPECT_EQ(describe(limited), "2 ranks x 1 to 2 threads on 4 cores, limited to the time of 2.5, not bound");
}

TEST(Placement, ACoreForEachThreadIsSound) {
  expect_sound(node_of(4, {kFour}, 4));
  expect_sound(node_of(4, {kFour, kFour}, 2));
  expect_sound(node_of(4, {{0, 1}, {2, 3}}, 2));
  expect_sound(node_of(4, {{0, 1}, {0, 1}, {2, 3}, {2, 3}}, 1));
  expect_sound(node_of(4, {{0}}, 1));
  host::NodePlacement uneven = node_of(4, {{0}, kFour}, 1);
  uneven.ranks[1].threads = 3;
  expect_sound(uneven);
}

TEST(Placement, MoreThreadsThanCores) {
  expect_warning(node_of(4, {kFour, kFour, kFour}, 2), "3 ranks x 2 threads (ranks 8-10) are more than the 4 cores");
  // Another binding would not help here.
  expect_warning(node_of(2, {{0}, {1}}, 2), "2 ranks x 2 threads (ranks 8-9) are more than the 2 cores");
}

TEST(Placement, MoreThreadsThanTheContainersTime) {
  host::NodePlacement node = node_of(16, {kFour, kFour}, 2);
  node.quota = 3;
  expect_warning(node, "2 ranks x 2 threads (ranks 8-9) are more than the 3 cores of the container's CPU limit");
  node.quota = 4;
  expect_sound(node);
}

TEST(Placement, BoundToFewerCoresThanThreads) {
  expect_warning(node_of(4, {{0}}, 2),
                 "rank 8 is bound to 1 core and has 2 threads; mpirun --bind-to none, or --map-by slot:PE=2");
  host::NodePlacement some = node_of(16, {{0}, {1}, {4, 5}, {2}}, 2);
  expect_warning(some, "ranks 8-9,11 are each bound to 1 core and have 2 threads");
}

TEST(Placement, SharedWhileOthersIdle) {
  expect_warning(node_of(4, {{0}, {0}}, 1),
                 "ranks 8-9 share 1 core for 2 threads, while 3 of the node's 4 are left idle");
  // Four ranks on one of two sockets.
  expect_warning(node_of(8, {kFour, kFour, kFour, kFour}, 2),
                 "ranks 8-11 share 4 cores for 8 threads, while 4 of the node's 8 are left idle");
  // Two share a core that a third rank may use as well.
  expect_warning(node_of(4, {{0}, {0}, kFour}, 1), "ranks 8-9 share 1 core for 2 threads;");
}

}  // namespace
}  // namespace lockstep
