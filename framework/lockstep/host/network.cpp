#include "lockstep/host/network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "lockstep/core/error.h"

namespace lockstep::host {
namespace {

constexpr const char* kSite = "network";

std::optional<Address> address_of(const sockaddr* socket) {
  Address address;
  if (socket == nullptr) return std::nullopt;
  if (socket->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, socket, sizeof four);
    std::memcpy(address.bytes.data(), &four.sin_addr, 4);
    return address;
  }
  if (socket->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 six{};
  std::memcpy(&six, socket, sizeof six);
  std::memcpy(address.bytes.data(), &six.sin6_addr, 16);
  address.bits = 128;
  return address;
}

std::string described(std::span<const Interface> there) {
  std::string text;
  for (const Interface& each : there) {
    if (!text.empty()) text += ", ";
    text += each.name + " " + each.address.str() + "/" + std::to_string(each.prefix);
  }
  return text.empty() ? "no interface that is up" : text;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The interface whose network holds the address, of several the narrowest one; nullptr: there is none.
const Interface* holder_of(const Address& address, std::span<const Interface> there) {
  const Interface* found = nullptr;
  for (const Interface& each : there) {
    if (each.network().holds(address) && (found == nullptr || each.prefix > found->prefix)) found = &each;
  }
  return found;
}

void add_entry(std::vector<InterfaceChoice>& chosen, const std::string& entry, std::span<const Interface> there,
               const std::string& host) {
  bool found = false;
  const auto add = [&](const std::string& name, const std::string& include) {
    const auto same = [&](const InterfaceChoice& c) { return c.name == name; };
    if (std::ranges::none_of(chosen, same)) chosen.push_back({name, include});
    found = true;
  };
  if (const std::optional<Address> address = parse_address(entry)) {
    if (const Interface* holder = holder_of(*address, there)) add(holder->name, holder->network().str());
  } else if (const std::optional<Network> network = parse_network(entry)) {
    for (const Interface& each : there) {
      if (network->holds(each.address)) add(each.name, network->str());
    }
  } else if (std::ranges::find(there, entry, &Interface::name) != there.end()) {
    add(entry, entry);
  }
  check(found, kSite, "{}: LOCKSTEP_INTERFACE has '{}', which is no interface here; this host has {}", host,
        entry.substr(0, 80), described(there));
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  check_call(getifaddrs(&list) == 0, kSite, "the interfaces cannot be listed");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const std::optional<Address> address = address_of(each->ifa_addr);
    const std::optional<Address> mask = address_of(each->ifa_netmask);
    if (!address || !mask || (each->ifa_flags & IFF_UP) == 0) continue;
    int prefix = 0;
    for (const std::uint8_t byte : mask->bytes) prefix += std::popcount(byte);
    const bool loopback = (each->ifa_flags & IFF_LOOPBACK) != 0 || address->is_loopback();
    found.push_back({each->ifa_name, *address, prefix, loopback});
  }
  return found;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "unknown";
}

std::optional<Interface> interface_to(const Address& peer, std::span<const Interface> there) {
  sockaddr_storage target{};
  socklen_t size = 0;
  constexpr in_port_t kAnyPort = 9;  // a datagram socket sends nothing when it is connected
  if (peer.bits == 32) {
    auto* four = reinterpret_cast<sockaddr_in*>(&target);
    four->sin_family = AF_INET;
    four->sin_port = htons(kAnyPort);
    std::memcpy(&four->sin_addr, peer.bytes.data(), 4);
    size = sizeof *four;
  } else {
    auto* six = reinterpret_cast<sockaddr_in6*>(&target);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(kAnyPort);
    std::memcpy(&six->sin6_addr, peer.bytes.data(), 16);
    size = sizeof *six;
  }
  const int socket = ::socket(target.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  const bool routed = connect(socket, reinterpret_cast<const sockaddr*>(&target), size) == 0 &&
                      getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0;
  close(socket);
  const std::optional<Address> address =
      routed ? address_of(reinterpret_cast<const sockaddr*>(&own)) : std::optional<Address>{};
  const auto found = address ? std::ranges::find(there, *address, &Interface::address) : there.end();
  return found == there.end() ? std::nullopt : std::optional(*found);
}

std::vector<Address> resolve(const std::string& name) {
  if (const auto address = parse_address(name)) return {*address};
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<Address> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const std::optional<Address> address = address_of(each->ai_addr);
    if (address && std::ranges::find(found, *address) == found.end()) found.push_back(*address);
  }
  return found;
}

std::vector<Address> listed_addresses(std::string_view text, std::string_view name) {
  std::vector<Address> found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    words >> first;
    const std::optional<Address> address = parse_address(first);
    for (std::string word; address && words >> word;) {
      if (word == name) found.push_back(*address);
    }
  }
  return found;
}

std::vector<InterfaceChoice> choose_interfaces(std::string_view setting, std::span<const Interface> there,
                                               const std::string& host) {
  std::vector<InterfaceChoice> chosen;
  for (std::size_t at = 0; at <= setting.size();) {
    const std::string_view entry = setting.substr(at, setting.find(',', at) - at);
    at += entry.size() + 1;
    check(!entry.empty(), kSite,
          "{}: LOCKSTEP_INTERFACE is '{}', expected names, addresses or networks with commas between them", host,
          setting.substr(0, 80));
    add_entry(chosen, std::string(entry), there, host);
  }
  return chosen;
}

std::string include_list(const std::vector<InterfaceChoice>& chosen, std::span<const Interface> there) {
  const auto position = [&](const InterfaceChoice& choice) {
    return std::ranges::find(there, choice.name, &Interface::name) - there.begin();
  };
  std::vector<InterfaceChoice> ordered = chosen;
  std::ranges::stable_sort(ordered, {}, position);
  std::vector<std::string> words;
  for (const InterfaceChoice& choice : ordered) {  // one network may hold several interfaces
    if (std::ranges::find(words, choice.include) == words.end()) words.push_back(choice.include);
  }
  std::string list;
  for (const std::string& word : words) {
    if (!list.empty()) list += ',';
    list += word;
  }
  return list;
}

std::vector<ProcessSettings::Variable> interface_settings(const InterfaceFacts& facts) {
  check(facts.policy.empty() || facts.policy == "all" || facts.policy == "rank", kSite,
        "{}: LOCKSTEP_INTERFACE_POLICY is '{}', expected all or rank", facts.host, facts.policy.substr(0, 40));
  if (facts.setting.empty()) return {};
  const std::vector<InterfaceChoice> chosen = choose_interfaces(facts.setting, facts.there, facts.host);
  const auto loops = [&](const InterfaceChoice& choice) {
    const auto at = std::ranges::find(facts.there, choice.name, &Interface::name);
    return at != facts.there.end() && (at->loopback || at->address.is_loopback());
  };
  const auto loop = std::ranges::find_if(chosen, loops);
  check(!facts.several_hosts || loop == chosen.end(), kSite,
        "{}: LOCKSTEP_INTERFACE has '{}', which reaches no other host, but the job is on several; it would hang",
        facts.host, loop == chosen.end() ? "" : loop->include);
  std::vector<ProcessSettings::Variable> set{{"OMPI_MCA_btl_tcp_if_include", include_list(chosen, facts.there)}};
  if (facts.policy != "rank" || chosen.size() < 2) return set;
  const std::size_t own = static_cast<std::size_t>(facts.local_rank) % chosen.size();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    // Open MPI takes the lowest latency for short messages, and shares long ones out by bandwidth (Mbit/s).
    set.push_back({"OMPI_MCA_btl_tcp_latency_" + chosen[i].name, i == own ? "1" : "1000"});
    set.push_back({"OMPI_MCA_btl_tcp_bandwidth_" + chosen[i].name, i == own ? "100000" : "1"});
  }
  return set;
}

void apply_interface_setting(int local_rank, bool several_hosts) {
  InterfaceFacts facts{.setting = variable("LOCKSTEP_INTERFACE"),
                       .policy = variable("LOCKSTEP_INTERFACE_POLICY"),
                       .local_rank = local_rank,
                       .several_hosts = several_hosts};
  if (facts.setting.empty() && facts.policy.empty()) return;
  facts.host = host_name();
  facts.there = interfaces();
  const auto settings = interface_settings(facts);
  for (const auto& [name, value] : settings) {
    check(setenv(name.c_str(), value.c_str(), 1) == 0, kSite, "{} cannot be set", name);
  }
  if (!settings.empty()) unsetenv("OMPI_MCA_btl_tcp_if_exclude");  // Open MPI refuses to have both
}

}  // namespace lockstep::host
