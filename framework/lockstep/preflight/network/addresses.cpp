#include "lockstep/preflight/network/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::preflight {
namespace {

std::string text_of(const sockaddr* address) {
  char text[INET_ADDRSTRLEN] = {};
  sockaddr_in in{};
  std::memcpy(&in, address, sizeof(in));
  return inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)) == nullptr ? "" : text;
}

// In the host's order of bytes.
std::optional<std::uint32_t> number_of(std::string_view address) {
  in_addr in{};
  if (inet_pton(AF_INET, std::string(address).c_str(), &in) != 1) return std::nullopt;
  return ntohl(in.s_addr);
}

std::uint32_t mask_of(int prefix) { return prefix <= 0 ? 0 : ~std::uint32_t{0} << (32 - std::min(prefix, 32)); }

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  check(getifaddrs(&list) == 0, "network", "the addresses of this host cannot be listed: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0) continue;
    sockaddr_in mask{};
    if (at->ifa_netmask != nullptr) std::memcpy(&mask, at->ifa_netmask, sizeof(mask));
    std::error_code none;
    found.push_back({.interface = at->ifa_name,
                     .address = text_of(at->ifa_addr),
                     .prefix = std::popcount(mask.sin_addr.s_addr),
                     .loopback = (at->ifa_flags & IFF_LOOPBACK) != 0,
                     .bridge = std::filesystem::exists(formatted("/sys/class/net/{}/bridge", at->ifa_name), none)});
  }
  return found;
}

std::vector<std::string> resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
  std::vector<std::string> found;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    if (const std::string text = text_of(at->ai_addr); std::ranges::find(found, text) == found.end())
      found.push_back(text);
  }
  return found;
}

std::optional<Route> route_to(const std::string& address) {
  const io::FileDescriptor file(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto number = number_of(address);
  if (!file.open() || !number) return std::nullopt;
  sockaddr_in to{}, from{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(*number);
  to.sin_port = htons(9);  // nothing is sent: connect() of a datagram socket chooses the route alone
  socklen_t length = sizeof(from);
  if (connect(file.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0 ||
      getsockname(file.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0)
    return std::nullopt;
  Route route{.address = text_of(reinterpret_cast<sockaddr*>(&from)), .interface = {}};
  for (const InterfaceAddress& own : interface_addresses()) {
    if (own.address == route.address && route.interface.empty()) route.interface = own.interface;
  }
  return route;
}

std::string network_of(std::string_view address, int prefix) {
  in_addr in{};
  in.s_addr = htonl(number_of(address).value_or(0) & mask_of(prefix));
  char text[INET_ADDRSTRLEN] = {};
  return formatted("{}/{}", inet_ntop(AF_INET, &in, text, sizeof(text)), prefix);
}

bool means(std::string_view item, const InterfaceAddress& interface) {
  if (item == interface.interface || item == interface.address) return true;
  const std::size_t slash = item.find('/');
  if (slash == std::string_view::npos) return false;
  int prefix = -1;
  std::from_chars(item.data() + slash + 1, item.data() + item.size(), prefix);
  const auto network = number_of(item.substr(0, slash)), own = number_of(interface.address);
  return prefix >= 0 && network && own && ((*network ^ *own) & mask_of(prefix)) == 0;
}

std::vector<std::string> items(std::string_view list) {
  std::vector<std::string> all;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (const std::string_view item = list.substr(0, comma); !item.empty()) all.emplace_back(item);
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return all;
}

}  // namespace lockstep::preflight
