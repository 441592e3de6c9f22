#include "lockstep/launch/rank_table.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/messages.h"

namespace lockstep::launch {
namespace {

constexpr const char* kTable = R"({
  "version": "1.0",
  "server_count": "2",
  "server_list": [
    { "server_id": "10.0.0.1",
      "device": [
        {"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"},
        {"device_id": "1", "device_ip": "10.2.0.1", "rank_id": "1"}],
      "host_nic_ip": "reserve" },
    { "server_id": "10.0.0.2",
      "device": [
        {"device_id": "0", "device_ip": "10.1.0.2", "rank_id": "2"},
        {"device_id": "1", "device_ip": "10.2.0.2", "rank_id": 3
        }] }
  ],
  "status": "completed"
}
)";

constexpr const char* kOlder = R"({"board_id": "0x0000", "deploy_mode": "lab", "group_count": "1",
 "group_list": [{"device_num": "2", "server_num": "2", "group_name": "", "instance_count": "2",
  "instance_list": [
   {"devices": [{"device_id": "0", "device_ip": "10.1.0.1"}], "rank_id": "0", "server_id": "a"},
   {"devices": [{"device_id": "0", "device_ip": "10.1.0.2"}], "rank_id": "1", "server_id": "b"}]}],
 "status": "completed"})";

// kTable, or another, with one text replaced by another.
std::string error_after(const std::string& from, const std::string& to, std::string table = kTable) {
  const std::size_t at = table.find(from);
  EXPECT_NE(at, table.npos) << from;
  table.replace(at, from.size(), to);
  return error_of([&] { parse_rank_table(table, "table"); });
}

TEST(RankTable, IsReadInBothForms) {
  const std::vector<Host> expected{
      {.name = "10.0.0.1", .slots = 2, .addresses = {"10.1.0.1", "10.2.0.1"}, .origin = "table:7"},
      {.name = "10.0.0.2", .slots = 2, .addresses = {"10.1.0.2", "10.2.0.2"}, .origin = "table:12"}};
  EXPECT_EQ(parse_rank_table(kTable, "table").hosts, expected);
  const std::vector<Host> older{{.name = "a", .slots = 1, .addresses = {"10.1.0.1"}, .origin = "table:4"},
                                {.name = "b", .slots = 1, .addresses = {"10.1.0.2"}, .origin = "table:5"}};
  EXPECT_EQ(parse_rank_table(kOlder, "table").hosts, older);
}

TEST(RankTable, WhatIsWrongIsSaidWithItsLine) {
  struct Case {
    const char *from, *to, *expected;
  };
  const std::vector<Case> cases{
      {R"("rank_id": "1")", R"("rank_id": "2")",
       "table:8: rank_id 2, expected 1: ranks count from 0 in the order of the table"},
      {R"("rank_id": 3)", R"("rank_id": 2)",
       "table:13: rank_id 2, expected 3: ranks count from 0 in the order of the table"},
      {R"("rank_id": "0")", R"("rank_id": "zero")", "table:7: rank_id is 'zero', expected a number from 0 to 65536"},
      {R"("rank_id": 3)", R"("rank_id": 3.5)", "table:13: rank_id is '3.5', expected a number from 0 to 65536"},
      {R"("server_count": "2")", R"("server_count": "3")", "table:3: server_count is 3, but server_list has 2 entries"},
      {"10.0.0.2", "10.0.0.1", "table:10: server_id 10.0.0.1 is in line 5 already, expected each server once"},
      {R"("device_id": "1", "device_ip": "10.2.0.1")", R"("device_id": "0", "device_ip": "10.2.0.1")",
       "table:8: device_id 0 of 10.0.0.1 is rank 0's already (line 7), expected each device once"},
      {"10.1.0.2", "10.1.0.1",
       "table:12: device_ip 10.1.0.1 is rank 0's on 10.0.0.1 already (line 7), expected an address on one host"},
      {"10.2.0.2", "10.9.0.2",
       "table:13: device_ip 10.9.0.2 of rank 3 is outside 10.2.0.0/24, the network of 10.2.0.1 on 10.0.0.1; expected "
       "one network for the same device of all hosts (--prefix BITS if the network is wider)"},
      {"10.2.0.2", "10.2.0.900", "table:13: device_ip is '10.2.0.900', expected an address such as 10.1.0.7, or none"},
      {"completed", "initializing",
       "table:16: status is 'initializing', expected 'completed': the table is not whole yet, or ranks are missing"},
      {R"("version": "1.0")", R"("version": "9")", "table:2: version is '9', expected 1.0"},
      {R"("server_id": "10.0.0.2")", R"("server_id": "-x")",
       "table:10: server_id: '-x' is no name of a host, expected letters, digits and . _ : -, perhaps after USER@"},
      {R"("server_id": "10.0.0.2",)", "", "table:10: no server_id here, expected one"},
      {"server_list", "server_lists", "table:1: no server_list here, expected one"}};
  for (const auto& [from, to, expected] : cases)
    EXPECT_EQ(error_after(from, to), std::string("[rank table] ") + expected) << from;
  EXPECT_EQ(error_after(R"("server_num": "2")", R"("server_num": "1")", kOlder),
            "[rank table] table:2: server_num is 1, but instance_list names 2 servers");
  EXPECT_EQ(error_after(R"("instance_count": "2")", R"("instance_count": "3")", kOlder),
            "[rank table] table:2: instance_count is 3, but instance_list has 2 entries");
}

TEST(RankTable, WhatIsNoJsonIsSaidWithItsLine) {
  EXPECT_EQ(error_after("\"status\"", "status").substr(0, 30), "[json] table:16: no JSON from ");
  EXPECT_EQ(error_after("\"version\"", "\"status\""),
            "[json] table:16: 'status' is there twice in one object, expected once");
  EXPECT_NE(error_of([] { parse_rank_table("", "table"); }).find("[json] table:1: no JSON"), std::string::npos);
  EXPECT_EQ(error_of([] { parse_rank_table(std::string(100000, '['), "table"); }),
            "[json] table:1: more than 32 levels, expected fewer");
  EXPECT_EQ(error_of([] { parse_rank_table("[]", "table"); }),
            "[rank table] table:1: expected one object with server_list or group_list");
}

TEST(RankTable, AWiderNetworkIsTakenOnRequest) {
  const std::string wide = std::regex_replace(kTable, std::regex("10.2.0.2"), "10.2.7.2");
  EXPECT_THROW(parse_rank_table(wide, "table"), Error);
  EXPECT_EQ(parse_rank_table(wide, "table", {.prefix = 16}).hosts[1].addresses[1], "10.2.7.2");
}

TEST(RankTable, WhatIsWrittenIsReadAgain) {
  HostList list = parse_rank_table(kTable, "table"), again = parse_rank_table(to_rank_table(list), "again");
  for (HostList* each : {&list, &again}) {
    for (Host& host : each->hosts) host.origin.clear();
  }
  EXPECT_EQ(again.hosts, list.hosts);
  EXPECT_NE(error_of([] { to_rank_table({{{.name = "a", .origin = "hosts:1"}}}); }).find("hosts:1: a has no slots="),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::launch
