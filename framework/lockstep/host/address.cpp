#include "lockstep/host/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace lockstep::host {

bool Address::is_loopback() const {
  static constexpr std::array<std::uint8_t, 16> own{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return bits == 32 ? bytes[0] == 127 : bytes == own;
}

std::string Address::str() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* done = inet_ntop(bits == 32 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return done == nullptr ? "" : done;
}

std::optional<Address> parse_address(std::string_view text) {
  const std::string whole(text);
  if (whole.find('\0') != whole.npos) return std::nullopt;
  Address address;
  if (inet_pton(AF_INET, whole.c_str(), address.bytes.data()) == 1) return address;
  address.bits = 128;
  if (inet_pton(AF_INET6, whole.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

bool Network::holds(const Address& address) const {
  return address.bits == base.bits && network_of(address, prefix) == *this;
}

std::string Network::str() const { return base.str() + "/" + std::to_string(prefix); }

Network network_of(const Address& address, int prefix) {
  Network network{.base = address, .prefix = std::clamp(prefix, 0, address.bits)};
  for (int bit = network.prefix; bit < 128; ++bit) {
    network.base.bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return network;
}

std::optional<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const std::optional<Address> address = parse_address(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  int prefix = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (!address || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (prefix < 0 || prefix > address->bits) return std::nullopt;
  return network_of(*address, prefix);
}

}  // namespace lockstep::host
