#include "lockstep/launch/hostfile.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "tests/messages.h"

namespace lockstep::launch {
namespace {

using namespace std::string_literals;

constexpr const char* kFile =
    "# two racks\n"
    "node1 slots=8\n"
    "  node2 max_slots=16 slots = 4 # slow\n"
    "\n"
    "me@node3\n"
    "node2\n";

// Of a hostfile with this text.
std::string error_of_file(const std::string& text) {
  return error_of([&] { parse_hostfile(text, "hosts"); });
}

TEST(Hostfile, IsReadInOrder) {
  const std::vector<Host> expected{{.name = "node1", .slots = 8, .origin = "hosts:2"},
                                   {.name = "node2", .slots = 5, .max_slots = 16, .origin = "hosts:3"},
                                   {.name = "node3", .user = "me", .origin = "hosts:5"}};
  const HostList list = parse_hostfile(kFile, "hosts");
  EXPECT_EQ(list.hosts, expected);
  EXPECT_FALSE(list.all_slots_said());
  EXPECT_EQ(list.slots(), 13);
  EXPECT_EQ(list.find("node3")->login(), "me@node3");
  EXPECT_EQ(list.find("me@node3"), nullptr);
}

TEST(Hostfile, IsReadAsOpenMpiReadsIt) {  // each tried with mpirun --display-allocation of Open MPI 4.1.4
  EXPECT_EQ(parse_hostfile("a\na\na\n", "hosts").hosts[0].slots, 3);
  EXPECT_EQ(parse_hostfile("a\n", "hosts").hosts[0].slots, 0);
  EXPECT_EQ(parse_hostfile("me@a slots=2\na\n", "hosts").hosts[0].slots, 3);
  EXPECT_EQ(parse_hostfile("a cpu= 2\n", "hosts").hosts[0].slots, 2);
  EXPECT_EQ(parse_hostfile("a count =2 max-slots=3 username=me\n", "hosts").hosts[0].login(), "me@a");
  EXPECT_EQ(parse_hostfile("a slots=0\nb\n", "hosts").hosts[0].name, "b");
}

TEST(Hostfile, WhatIsWrongIsSaidWithItsLineAndWhatToWrite) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"# nobody\n", "hosts names no host, expected lines like 'node1 slots=8'"},
      {"a slots=0\n", "hosts names no host that takes a rank, expected lines like 'node1 slots=8'"},
      {"a slots=eight\n", "hosts:1: 'slots=eight', expected a number from 0 to 65536, as in slots=8"},
      {"a slots=-1\n", "hosts:1: 'slots=-1', expected a number from 0 to 65536, as in slots=8"},
      {"a slots=\n", "hosts:1: 'slots=', expected a number from 0 to 65536, as in slots=8"},
      {"b\na 8\n", "hosts:2: '8' after the name of a host, expected slots=8"},
      {"a slot=8\n",
       "hosts:1: 'slot=8' after the name of a host, expected slots=NUMBER, max_slots=NUMBER or username=USER"},
      {"a:8\n", "hosts:1: 'a:8' is the form of -H and of MPICH; expected 'a slots=8'"},
      {"slots=8 a\n", "hosts:1: the line begins with 'slots=8', expected the name of a host first"},
      {"a slots=8 slots=4\n", "hosts:1: slots twice in one line, expected once"},
      {"a slots=8\nb\na slots=4\n",
       "hosts:3: a is named in hosts:1 already, and Open MPI 4.1 ends where slots are said again; expected one line "
       "'a slots=12'"},
      {"a slots=8 max_slots=4\n", "hosts:1: 8 slots and max_slots=4, expected max_slots of at least 8"},
      {"a slots=8\r\n",
       "hosts:1: the line ends as on Windows, which Open MPI refuses; expected Unix lines (sed -i 's/\\r$//' FILE)"},
      {"no\0de\n"s, "hosts:1: a NUL byte; expected text, with lines like 'node1 slots=8'"},
      {"a\nn\xf6"
       "de2 slots=2\n",
       "hosts:2: bytes that are no UTF-8; expected text, with lines like 'node1 slots=8'"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(error_of_file(text), "[hostfile] " + expected) << text;
}

TEST(Hostfile, WhatIsNoNameIsRefusedWithItsLine) {
  for (const char* name : {"-oProxyCommand=x", "a;b", "$(a)", "a`b", "n\x01", "me@", "a@b@c", "a,b"})
    EXPECT_NE(error_of_file("node1\n" + std::string(name) + " slots=2\n").find("hosts:2: "), std::string::npos) << name;
  EXPECT_EQ(error_of_file("fe80::1 slots=2\nrack_1-node.example slots=2\nme@node3\n"), "no error");
  EXPECT_NE(error_of_file("node1\n\nnode2 " + std::string(1100, ' ') + "\n").find("hosts:3: "), std::string::npos);
}

TEST(Hostfile, ACommentMayHaveAnyBytesButZeros) {
  EXPECT_NE(error_of_file("node1 # a\0b\n"s).find("hosts:1: a NUL byte"), std::string::npos);
  EXPECT_NE(error_of_file("node1 slots=2 x=\xff\n").find("no UTF-8"), std::string::npos);
  EXPECT_NE(error_of_file(std::string(5000, '\xff')).find("no UTF-8"), std::string::npos);
  EXPECT_EQ(error_of_file("node1 # the large \xf6ne\n"), "no error") << "a comment in an older encoding";
}

TEST(Hostfile, LostHostsAreLeftOutAndTheRestStaysAsItWas) {
  const std::vector<std::string> lost{"node2", "me@node3"};
  EXPECT_EQ(hostfile_without(kFile, lost), "# two racks\nnode1 slots=8\n\n");
}

TEST(Hostfile, WhatIsWrittenIsReadAgain) {
  HostList list = parse_hostfile(kFile, "hosts");
  const std::string text = to_hostfile(list, "by hand\nin May");
  EXPECT_EQ(text, "# by hand\n# in May\nnode1 slots=8\nnode2 slots=5 max_slots=16\nme@node3\n");
  HostList again = parse_hostfile(text, "hosts");
  for (HostList* each : {&list, &again}) {
    for (Host& host : each->hosts) host.origin.clear();
  }
  EXPECT_EQ(again.hosts, list.hosts);
}

TEST(HostList, ThisMachine) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("me@127.0.0.1"));
  EXPECT_FALSE(is_this_machine("10.77.0.2"));
  EXPECT_FALSE(is_this_machine("surely-another-machine"));
  for (const host::Interface& own : host::interfaces()) EXPECT_TRUE(is_this_machine(own.address.str())) << own.name;
}

TEST(HostList, ThisMachineByItsAddressesAndAliases) {
  const host::Interface eth0{"eth0", *host::parse_address("10.1.0.1"), 24};
  const host::Interface ib0{"ib0", *host::parse_address("fd00::1"), 64};
  const OwnNames own{.host = "node1.cluster",
                     .there = {eth0, ib0},
                     .listed =
                         "127.0.0.1 localhost\n127.0.1.1 node9 # a mistake\n10.1.0.1\tfirst one\n"
                         "fd00::1 node1-ib\n10.1.0.2 node2 # one of two\n#10.1.0.1 gone\n"};
  for (const char* mine : {"node1", "node1.cluster", "node1.elsewhere", "me@10.1.0.1", "fd00::1", "FD00:0::1", "first",
                           "me@one", "node1-ib", "127.0.1.1"})
    EXPECT_TRUE(is_this_machine(mine, own)) << mine;
  for (const char* other : {"node2", "node9", "gone", "of", "10.1.0.2", "10.1.0.11", "fd00::2", "nodes"})
    EXPECT_FALSE(is_this_machine(other, own)) << other;
}

}  // namespace
}  // namespace lockstep::launch
