#include "lockstep/preflight/network/peers.h"

#include <algorithm>

namespace lockstep::preflight {
namespace {

using nlohmann::json;

bool is_own(const Peer& peer, const std::string& address) {
  return std::ranges::any_of(peer.addresses, [&](const InterfaceAddress& a) { return a.address == address; });
}

// On the network that MPI was told to use; else by name, as mpirun does; else the first that leaves the host.
std::string address_of(const Peer& peer, const std::string& setting) {
  for (const std::string& item : items(setting)) {
    for (const InterfaceAddress& own : peer.addresses) {
      if (means(item, own)) return own.address;
    }
  }
  const std::vector<std::string> named = resolve(peer.host);
  for (const std::string& address : named) {
    if (is_own(peer, address) && !address.starts_with("127.")) return address;
  }
  for (const InterfaceAddress& own : peer.addresses) {
    if (!own.loopback && !own.bridge) return own.address;
  }
  return "";
}

}  // namespace

json to_json(const InterfaceAddress& a) {
  return {{"interface", a.interface},
          {"address", a.address},
          {"prefix", a.prefix},
          {"loopback", a.loopback},
          {"bridge", a.bridge}};
}

InterfaceAddress address_from_json(const json& value) {
  return {.interface = value.at("interface"),
          .address = value.at("address"),
          .prefix = value.at("prefix"),
          .loopback = value.at("loopback"),
          .bridge = value.at("bridge")};
}

std::vector<InterfaceAddress> addresses_from_json(const json& list) {
  std::vector<InterfaceAddress> all;
  for (const json& value : list) all.push_back(address_from_json(value));
  return all;
}

std::vector<Peer> find_peers(const Subject& subject, Exchange& exchange) {
  json mine = nullptr;
  if (subject.speaks()) {
    const auto& hosts = subject.network.hosts;
    const auto node = static_cast<std::size_t>(subject.node);
    mine = {{"rank", subject.rank},
            {"node", subject.node},
            {"host", node < hosts.size() ? hosts[node] : subject.host},
            {"addresses", json::array()}};
    for (const InterfaceAddress& address : interface_addresses()) mine["addresses"].push_back(to_json(address));
  }
  std::vector<Peer> peers;
  for (const std::string& text : exchange.allgather(mine.dump())) {
    const json value = json::parse(text);
    if (value.is_null()) continue;
    peers.push_back({.rank = value.at("rank"),
                     .node = value.at("node"),
                     .host = value.at("host"),
                     .addresses = addresses_from_json(value.at("addresses"))});
    if (subject.speaks()) peers.back().address = address_of(peers.back(), subject.network.interface);
  }
  std::ranges::sort(peers, {}, &Peer::node);
  return peers;
}

}  // namespace lockstep::preflight
