#include "lockstep/preflight/network/addresses.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "lockstep/core/error.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/host/network.h"

namespace lockstep::preflight {
namespace {

constexpr int kBits = 32;  // of an IPv4 address

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> found;
  for (const host::Interface& each : host::interfaces()) {
    if (each.address.bits != kBits) continue;
    std::error_code none;
    found.push_back({.interface = each.name,
                     .address = each.address.str(),
                     .prefix = each.prefix,
                     .loopback = each.loopback,
                     .bridge = std::filesystem::exists(formatted("/sys/class/net/{}/bridge", each.name), none)});
  }
  return found;
}

std::vector<std::string> resolve(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<std::string>> known;
  {
    const std::scoped_lock lock(mutex);
    if (const auto before = known.find(name); before != known.end()) return before->second;
  }
  std::vector<std::string> found;
  for (const host::Address& address : host::resolve(name)) {
    if (address.bits == kBits) found.push_back(address.str());
  }
  const std::scoped_lock lock(mutex);
  known[name] = found;
  return found;
}

std::vector<std::vector<std::string>> resolve_all(const std::vector<std::string>& names) {
  constexpr std::size_t kMostAtOnce = 32;
  std::vector<std::vector<std::string>> found(names.size());
  const std::size_t threads = std::clamp<std::size_t>(names.size(), 1, kMostAtOnce);
  on_threads(threads, [&](std::size_t part) {
    for (std::size_t i = part; i < names.size(); i += threads) found[i] = resolve(names[i]);
  });
  return found;
}

std::optional<Route> route_to(const std::string& address) {
  const std::optional<host::Address> peer = host::parse_address(address);
  if (!peer || peer->bits != kBits) return std::nullopt;
  const std::vector<host::Interface> there = host::interfaces();
  const std::optional<host::Interface> own = host::interface_to(*peer, there);
  if (!own) return std::nullopt;
  return Route{.address = own->address.str(), .interface = own->name};
}

std::string network_of(std::string_view address, int prefix) {
  return host::network_of(host::parse_address(address).value_or(host::Address{}), prefix).str();
}

bool means(std::string_view item, const InterfaceAddress& interface) {
  if (item == interface.interface) return true;
  const std::optional<host::Address> own = host::parse_address(interface.address);
  if (!own) return false;
  if (const auto network = host::parse_network(item)) return network->holds(*own);
  const std::optional<host::Address> named = host::parse_address(item);
  return named && host::network_of(*own, interface.prefix).holds(*named);
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
