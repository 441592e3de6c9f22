// Every host connects to every other on the ports that MPI will use.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/network/firewall.h"
#include "lockstep/preflight/network/peers.h"
#include "lockstep/preflight/network/sockets.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kConnectLimit{8000};  // three lost packets in a row fit in
constexpr int kMostPorts = 64;                            // of a range that are looked at, from its beginning
constexpr std::size_t kMostOpen = 256;                    // ports of a host: a usual limit is 1024 open files

// Without a range MPI listens from 1024 on, and its daemons where the kernel chooses. Of a range, no more ports stay
// open than all hosts can be connected to.
std::vector<io::FileDescriptor> open_ports(const launch::PortRange& ports, std::size_t hosts, json& occupied) {
  std::vector<io::FileDescriptor> open;
  if (ports.any()) {
    for (int port = 1024; port < 1100 && open.empty(); ++port) {
      if (auto socket = listen_at(port)) open.push_back(*std::move(socket));
    }
    for (int i = 0; i < 2; ++i) {
      if (auto socket = listen_at(0)) open.push_back(*std::move(socket));
    }
    return open;
  }
  const std::size_t most = std::max<std::size_t>(2, kMostOpen / hosts);
  for (int port = ports.first; port <= std::min(ports.last, ports.first + kMostPorts - 1); ++port) {
    auto socket = listen_at(port);
    const int reason = errno;
    if (!socket) {
      occupied.push_back({{"port", port}, {"reason", std::strerror(reason)}, {"owner", listener_of(port)}});
    } else if (open.size() < most) {
      open.push_back(*std::move(socket));
    }
  }
  return open;
}

json connections(const Subject& subject, const std::vector<Peer>& peers, const std::vector<std::string>& listening) {
  std::vector<Target> targets;
  std::vector<std::string> names;
  for (const Peer& peer : peers) {
    if (peer.node == subject.node) continue;
    for (const int port : json::parse(listening[static_cast<std::size_t>(peer.rank)]).get<std::vector<int>>()) {
      if (peer.address.empty()) continue;
      targets.push_back({peer.address, port});
      names.push_back(peer.host);
    }
  }
  const std::vector<std::string> results = try_to_connect(targets, kConnectLimit);
  json failed = json::array();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!results[i].empty())
      failed.push_back(
          {{"host", names[i]}, {"address", targets[i].address}, {"port", targets[i].port}, {"reason", results[i]}});
  }
  return {{"tried", targets.size()}, {"failed", failed}};
}

json gather_ports(const Subject& subject, Exchange& exchange) {
  const std::vector<Peer> peers = find_peers(subject, exchange);
  json occupied = json::array(), numbers = json::array();
  std::vector<io::FileDescriptor> open;
  if (subject.speaks() && (peers.size() > 1 || !subject.network.ports.any()))
    open = open_ports(subject.network.ports, peers.size(), occupied);
  for (const io::FileDescriptor& socket : open) numbers.push_back(port_of(socket));
  const std::vector<std::string> listening = exchange.allgather(numbers.dump());
  json facts = nullptr;
  if (subject.speaks()) {
    facts = connections(subject, peers, listening);
    const Firewall firewall = peers.size() > 1 ? firewall_here() : Firewall{};
    const auto own = std::ranges::find(peers, subject.node, &Peer::node);
    std::string network = "0.0.0.0/0";
    for (const InterfaceAddress& address : own->addresses) {
      if (address.address == own->address) network = network_of(address.address, address.prefix);
    }
    facts.update({{"name", own->host},
                  {"occupied", occupied},
                  {"ports", {subject.network.ports.first, subject.network.ports.last}},
                  {"mend", opening_line(firewall, network, subject.network.ports)},
                  {"firewall", firewall.tool}});
  }
  exchange.allgather("");  // until here all listen
  return facts;
}

std::vector<Finding> occupied_ports(const RankFacts& node) {
  std::vector<Finding> findings;
  for (const json& entry : node.value.at("occupied")) {
    const std::string owner = entry.at("owner");
    findings.push_back(
        {.level = Level::Red,
         .what = formatted("port {} of --ports is taken{}{} ({})", entry.at("port").get<int>(),
                           owner.empty() ? "" : " by ", owner, entry.at("reason").get<std::string>()),
         .where = node.host,
         .mend = owner.empty() ? "another range for --ports" : "another range for --ports, or end that process"});
  }
  return findings;
}

std::string list_of(const std::set<int>& ports) {
  return ports.size() == 1 ? formatted("port {}", *ports.begin())
                           : formatted("{} ports of {} to {}", ports.size(), *ports.begin(), *ports.rbegin());
}

// By (destination, reason): the sources and ports.
struct Blocked {
  std::set<std::string> from{};
  std::set<int> ports{};
};

std::vector<Finding> conclude_ports(const Facts& facts) {
  std::vector<Finding> findings;
  std::map<std::pair<std::string, std::string>, Blocked> blocked;
  std::map<std::string, const RankFacts*> by_name;
  int tried = 0;
  for (const RankFacts& node : facts) {
    by_name[node.value.at("name").get<std::string>()] = &node;
    tried += node.value.at("tried").get<int>();
    for (Finding& finding : occupied_ports(node)) findings.push_back(std::move(finding));
    for (const json& failed : node.value.at("failed")) {
      Blocked& entry = blocked[{failed.at("host"), failed.at("reason")}];
      entry.from.insert(node.host);
      entry.ports.insert(failed.at("port").get<int>());
    }
  }
  for (const auto& [key, entry] : blocked) {
    const auto& [host, reason] = key;
    const RankFacts* target = by_name.contains(host) ? by_name.at(host) : nullptr;
    const std::string firewall = target == nullptr ? "" : target->value.at("firewall").get<std::string>();
    findings.push_back(
        {.level = Level::Red,
         .what = formatted("no connection to {} ({}){}", list_of(entry.ports), reason,
                           firewall.empty() ? "" : formatted("; {} has {} at work", host, firewall)),
         .where = formatted("{} to {}", joined(entry.from, ", "), host),
         .mend = target == nullptr ? "" : formatted("on {}: {}", host, target->value.at("mend").get<std::string>())});
  }
  return or_green(std::move(findings), facts.size() == 1 ? "1 host" : formatted("{} connections, both ways", tried));
}

}  // namespace

const Check kPorts{"ports", Cost::Thorough, gather_ports, conclude_ports};

}  // namespace lockstep::preflight
