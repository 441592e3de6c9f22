#include "lockstep/host/network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::host {
namespace {

Interface interface(const char* name, const char* address, int prefix) {
  return {name, *parse_address(address), prefix};
}

const std::vector<Interface> kThere{interface("lo", "127.0.0.1", 8), interface("eth0", "10.1.0.1", 24),
                                    interface("eth1", "10.2.0.1", 24), interface("eth1", "fd00::1", 64)};

using Choices = std::vector<InterfaceChoice>;
using Variables = std::vector<ProcessSettings::Variable>;

std::string error_of(const InterfaceFacts& facts) {
  try {
    interface_settings(facts);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Network, SettingsNameInterfacesByNameAddressAndNetwork) {
  const auto choose = [](const char* setting) { return choose_interfaces(setting, kThere, "node1"); };
  EXPECT_EQ(choose("eth0"), (Choices{{"eth0", "eth0"}}));
  EXPECT_EQ(choose("10.2.0.1"), (Choices{{"eth1", "10.2.0.0/24"}})) << "an address of this machine";
  EXPECT_EQ(choose("10.2.0.77"), (Choices{{"eth1", "10.2.0.0/24"}})) << "an address of another one";
  EXPECT_EQ(choose("10.1.0.0/16"), (Choices{{"eth0", "10.1.0.0/16"}}));
  EXPECT_EQ(choose("fd00::2"), (Choices{{"eth1", "fd00::/64"}}));
  EXPECT_EQ(choose("eth1,10.1.0.9,eth1"), (Choices{{"eth1", "eth1"}, {"eth0", "10.1.0.0/24"}}));
  EXPECT_EQ(choose("10.0.0.0/8"), (Choices{{"eth0", "10.0.0.0/8"}, {"eth1", "10.0.0.0/8"}}));
}

TEST(Network, AnAddressStandsForTheNarrowestNetworkThatHoldsIt) {
  const std::vector<Interface> there{interface("wide", "10.0.0.1", 8), interface("eth0", "10.1.0.1", 24)};
  EXPECT_EQ(choose_interfaces("10.1.0.7", there, "node1"), (Choices{{"eth0", "10.1.0.0/24"}}));
  EXPECT_EQ(choose_interfaces("10.9.0.7", there, "node1"), (Choices{{"wide", "10.0.0.0/8"}}));
}

TEST(Network, WhatIsNotThereIsNamed) {
  EXPECT_EQ(error_of({.setting = "eth7", .there = kThere, .host = "node1"}),
            "[network] node1: LOCKSTEP_INTERFACE has 'eth7', which is no interface here; this host has lo 127.0.0.1/8, "
            "eth0 10.1.0.1/24, eth1 10.2.0.1/24, eth1 fd00::1/64");
  for (const char* wrong : {"10.9.0.1", "10.9.0.0/16", "eth0,", ",", "eth0,,eth1", "10.1.0.0/40"})
    EXPECT_NE(error_of({.setting = wrong, .there = kThere, .host = "node1"}).find("LOCKSTEP_INTERFACE"),
              std::string::npos)
        << wrong;
  EXPECT_EQ(error_of({.setting = "eth0", .policy = "some", .there = kThere, .host = "node1"}),
            "[network] node1: LOCKSTEP_INTERFACE_POLICY is 'some', expected all or rank");
}

TEST(Network, ALoopbackIsRefusedBetweenHosts) {
  InterfaceFacts facts{.setting = "lo", .there = kThere, .host = "node1"};
  EXPECT_EQ(interface_settings(facts), (Variables{{"OMPI_MCA_btl_tcp_if_include", "lo"}}));
  facts.several_hosts = true;
  EXPECT_EQ(error_of(facts),
            "[network] node1: LOCKSTEP_INTERFACE has 'lo', which reaches no other host, but the job is on several; it "
            "would hang");
}

TEST(Network, ARankPrefersItsOwnInterface) {
  InterfaceFacts facts{.setting = "eth0,eth1", .policy = "all", .there = kThere, .host = "node1", .local_rank = 3};
  EXPECT_EQ(interface_settings(facts), (Variables{{"OMPI_MCA_btl_tcp_if_include", "eth0,eth1"}}));
  facts.policy = "rank";
  EXPECT_EQ(interface_settings(facts), (Variables{{"OMPI_MCA_btl_tcp_if_include", "eth0,eth1"},
                                                  {"OMPI_MCA_btl_tcp_latency_eth0", "1000"},
                                                  {"OMPI_MCA_btl_tcp_bandwidth_eth0", "1"},
                                                  {"OMPI_MCA_btl_tcp_latency_eth1", "1"},
                                                  {"OMPI_MCA_btl_tcp_bandwidth_eth1", "100000"}}));
  facts.setting = "eth1,10.1.0.9";  // rank 3 prefers the second; Open MPI is given the system's order
  EXPECT_EQ(interface_settings(facts)[0].value, "10.1.0.0/24,eth1");
  EXPECT_EQ(interface_settings(facts)[3], (ProcessSettings::Variable{"OMPI_MCA_btl_tcp_latency_eth0", "1"}));
  facts.setting = "10.0.0.0/8";
  EXPECT_EQ(interface_settings(facts)[0].value, "10.0.0.0/8") << "one network of two interfaces";
  facts.setting = "";
  EXPECT_TRUE(interface_settings(facts).empty());
}

TEST(Network, OfThisMachine) {
  const std::vector<Interface> there = interfaces();
  const auto loop = std::ranges::find(there, *parse_address("127.0.0.1"), &Interface::address);
  ASSERT_NE(loop, there.end());
  EXPECT_EQ(loop->prefix, 8);
  EXPECT_TRUE(loop->loopback);
  const std::optional<Interface> route = interface_to(*parse_address("127.0.0.1"), there);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->name, loop->name);
  EXPECT_EQ(resolve("10.1.0.7"), std::vector<Address>(1, *parse_address("10.1.0.7")));
}

}  // namespace
}  // namespace lockstep::host
