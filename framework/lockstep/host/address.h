// Addresses of the Internet, IPv4 and IPv6, and networks of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::host {

struct Address {
  std::array<std::uint8_t, 16> bytes{};  // in the order of the network; IPv4 in the first four
  int bits = 32;                         // of the whole address: 32 or 128

  bool is_loopback() const;
  std::string str() const;
  bool operator==(const Address&) const = default;
};

std::optional<Address> parse_address(std::string_view text);  // nothing: `text` is no address

struct Network {
  Address base{};  // bits behind the prefix are zero
  int prefix = 0;

  bool holds(const Address& address) const;
  std::string str() const;  // 10.1.0.0/16
  bool operator==(const Network&) const = default;
};

Network network_of(const Address& address, int prefix);
std::optional<Network> parse_network(std::string_view text);  // ADDRESS/BITS; nothing: `text` is no network

}  // namespace lockstep::host
