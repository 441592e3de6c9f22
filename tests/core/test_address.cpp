#include "lockstep/host/address.h"

#include <gtest/gtest.h>

namespace lockstep::host {
namespace {

TEST(Address, IsReadAndWritten) {
  for (const char* text : {"10.1.0.7", "0.0.0.0", "fd00::7", "::1"}) {
    const std::optional<Address> address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->str(), text);
  }
  EXPECT_EQ(parse_address("FD00:0::7")->str(), "fd00::7");
  for (const char* text : {"", "10.1.0", "10.1.0.256", "node1", "fd00::7::", "[fd00::7]", "10.1.0.7 "})
    EXPECT_FALSE(parse_address(text)) << text;
  EXPECT_TRUE(parse_address("127.0.1.1")->is_loopback());
  EXPECT_TRUE(parse_address("::1")->is_loopback());
  EXPECT_FALSE(parse_address("10.0.0.1")->is_loopback());
}

TEST(Network, HoldsItsAddresses) {
  const Network network = *parse_network("10.1.3.7/20");
  EXPECT_EQ(network.str(), "10.1.0.0/20");
  EXPECT_TRUE(network.holds(*parse_address("10.1.15.255")));
  EXPECT_FALSE(network.holds(*parse_address("10.1.16.0")));
  EXPECT_FALSE(network.holds(*parse_address("fd00::1")));
  EXPECT_EQ(parse_network("fd00::7/64")->str(), "fd00::/64");
  EXPECT_TRUE(parse_network("0.0.0.0/0")->holds(*parse_address("1.2.3.4")));
  for (const char* text : {"10.1.0.0", "10.1.0.0/33", "10.1.0.0/", "10.1.0.0/-1", "x/8", "fd00::/129", "10.0.0.0/8x"})
    EXPECT_FALSE(parse_network(text)) << text;
}

}  // namespace
}  // namespace lockstep::host
