#include "tools/supervisor/hosts.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"

namespace lockstep::supervisor {
namespace {

constexpr const char* kFile =
    "# two racks\n"
    "node1 slots=8\n"
    "  node2 max_slots=16 slots=4 # slow\n"
    "\n"
    "me@node3\n"
    "node2 slots=2\n";

TEST(Hosts, OfAHostfile) {
  const std::vector<Host> expected{{"node1", 8}, {"node2", 6}, {"me@node3", 0}};
  EXPECT_EQ(parse_hostfile(kFile, "hosts"), expected);
  EXPECT_THROW(parse_hostfile("# nobody\n", "hosts"), Error);
  EXPECT_THROW(parse_hostfile("node1 slots=eight\n", "hosts"), Error);
  EXPECT_THROW(parse_hostfile("node1 slots= 8\n", "hosts"), Error);
  EXPECT_THROW(parse_hostfile("node1 slots\n", "hosts"), Error);
}

// Of a hostfile with this text; empty: there is none.
std::string error_of(const std::string& text) {
  try {
    parse_hostfile(text, "hosts");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Hosts, WhatIsNoNameIsRefusedWithItsLine) {
  for (const char* name : {"-oProxyCommand=x", "a;b", "$(a)", "a`b", "n\x01"})
    EXPECT_NE(error_of("node1\n" + std::string(name) + " slots=2\n").find("hosts:2: "), std::string::npos) << name;
  EXPECT_EQ(error_of("fe80::1 slots=2\nrack_1-node.example slots=2\nme@node3\n"), "");
  EXPECT_NE(error_of("node1\n\nnode2 " + std::string(1100, ' ') + "\n").find("hosts:3: "), std::string::npos);
  EXPECT_THROW(parse_host_list("a,-b"), Error);
}

TEST(Hosts, WhatIsNoTextIsNamedAsSuch) {
  using namespace std::string_literals;
  EXPECT_EQ(error_of("node1\nno\0de2 slots=2\n"s),
            "[hostfile] hosts:2: a NUL byte; expected text, with lines like 'node1 slots=8'");
  EXPECT_NE(error_of("node1 # a\0b\n"s).find("hosts:1: a NUL byte"), std::string::npos);
  EXPECT_EQ(error_of("node1\nn\xf6"
                     "de2 slots=2\n"),
            "[hostfile] hosts:2: bytes that are no UTF-8; expected text, with lines like 'node1 slots=8'");
  EXPECT_NE(error_of("node1 slots=2 x=\xff\n").find("no UTF-8"), std::string::npos);
  EXPECT_NE(error_of(std::string(5000, '\xff')).find("no UTF-8"), std::string::npos);
  EXPECT_EQ(error_of("node1 # the large \xf6ne\n"), "") << "a comment in an older encoding";
}

TEST(Hosts, OfAList) {
  const std::vector<Host> expected{{"a", 4}, {"b", 2}, {"c", 1}};
  EXPECT_EQ(parse_host_list("a:4,b,b,c"), expected);
  for (const char* wrong : {"a:", "a:x", ":3", "a,,b"}) EXPECT_THROW(parse_host_list(wrong), Error) << wrong;
}

TEST(Hosts, LeftOutAreGoneAndTheRestStaysAsItWas) {
  const std::vector<std::string> lost{"node2", "me@node3"};
  EXPECT_EQ(hostfile_without(kFile, lost), "# two racks\nnode1 slots=8\n\n");
  EXPECT_EQ(host_list_without("node1:4,node2:4,node22", lost), "node1:4,node22");
}

TEST(Hosts, RanksFollowSlots) {
  const std::vector<Host> all{{"a", 8}, {"b", 8}, {"c", 4}}, two{{"a", 8}, {"c", 4}};
  EXPECT_EQ(ranks_for(all, all, 20), 20);
  EXPECT_EQ(ranks_for(two, all, 20), 12);
  EXPECT_EQ(ranks_for(two, all, 10), 10);  // they have room
  EXPECT_EQ(ranks_for(two, all, 40), 24);  // two on each slot, as before
  EXPECT_EQ(ranks_for(two, all, std::nullopt), std::nullopt);
  EXPECT_EQ(ranks_for({}, all, 20), 0);
}

TEST(Hosts, RanksFollowHostsWithoutSlots) {
  const std::vector<Host> all{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 4}};
  EXPECT_EQ(ranks_for(std::span(all).first(3), all, 30), 22);
}

TEST(Hosts, ThisMachine) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("me@127.0.0.1"));
  EXPECT_FALSE(is_this_machine("10.77.0.2"));
  EXPECT_FALSE(is_this_machine("surely-another-machine"));
}

}  // namespace
}  // namespace lockstep::supervisor
