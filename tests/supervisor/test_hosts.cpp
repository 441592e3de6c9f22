#include "tools/supervisor/hosts.h"

#include <gtest/gtest.h>

#include "lockstep/launch/host_option.h"

namespace lockstep::supervisor {
namespace {

TEST(Hosts, RanksFollowSlots) {
  const auto all = launch::parse_host_list("a:8,b:8,c:4"), two = launch::parse_host_list("a:8,c:4");
  EXPECT_EQ(ranks_for(all, all, 20), 20);
  EXPECT_EQ(ranks_for(two, all, 20), 12);
  EXPECT_EQ(ranks_for(two, all, 10), 10);  // they have room
  EXPECT_EQ(ranks_for(two, all, 40), 24);  // two on each slot, as before
  EXPECT_EQ(ranks_for(two, all, std::nullopt), std::nullopt);
  EXPECT_EQ(ranks_for({}, all, 20), 0);
}

TEST(Hosts, RanksFollowHostsWithoutSlots) {
  EXPECT_EQ(ranks_for(launch::parse_host_list("a:*,b:*,c:*"), launch::parse_host_list("a:*,b:*,c:*,d:4"), 30), 22);
}

}  // namespace
}  // namespace lockstep::supervisor
