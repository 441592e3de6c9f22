#include "lockstep/launch/host_option.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "tests/messages.h"

namespace lockstep::launch {
namespace {

std::string error_of_list(const std::string& text) {
  return error_of([&] { parse_host_list(text); });
}

TEST(HostOption, IsReadInOrder) {
  const std::vector<Host> expected{{.name = "a", .slots = 4, .origin = "-H, entry 1"},
                                   {.name = "b", .slots = 2, .origin = "-H, entry 2"},
                                   {.name = "fd00::1", .user = "me", .slots = 8, .origin = "-H, entry 4"},
                                   {.name = "fd00::2", .slots = 1, .origin = "-H, entry 5"},
                                   {.name = "c", .slots = 0, .origin = "-H, entry 6"}};
  EXPECT_EQ(parse_host_list("a:4,b,b,me@[fd00::1]:8,[fd00::2],c:*").hosts, expected);
  EXPECT_EQ(to_host_list({expected}), "a:4,b:2,me@[fd00::1]:8,[fd00::2]:1,c:*");
}

TEST(HostOption, WhatIsWrongIsSaidWithItsEntry) {
  for (const char* wrong :
       {"",      "a:",      "a:x",      ":3",         "a,,b", "a,", "a:0", "a:-1", "a:99999999999999999999",
        "a:1:2", "fd00::1", "[fd00::1", "[fd00::1]8", "[]:8", "@a", "me@", "a,-b", "a;b",
        "a b",   "a\xff"})
    EXPECT_NE(error_of_list(wrong).find("[hosts] -H"), std::string::npos) << wrong;
  EXPECT_EQ(error_of_list("a:8,b:8:2"),
            "[hosts] -H, entry 2: 'b:8:2', expected NAME, NAME:SLOTS or, for IPv6, [ADDRESS]:SLOTS");
  EXPECT_EQ(error_of_list("a:many"),
            "[hosts] -H, entry 1: 'a:many' has 'many' slots, expected a number from 1 to 65536");
}

TEST(HostOption, LostHostsAreLeftOut) {
  const std::vector<std::string> lost{"node2", "me@node3"};
  EXPECT_EQ(host_list_without("node1:4,node2:4,node22,me@node3:2,node2", lost), "node1:4,node22");
}

}  // namespace
}  // namespace lockstep::launch
