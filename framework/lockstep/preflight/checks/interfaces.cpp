// The network interfaces: the one by which each host's route leads to the others, against those that MPI was told to
// use or would choose.
#include <algorithm>
#include <map>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/network/peers.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

json gather_interfaces(const Subject& subject, Exchange& exchange) {
  const std::vector<Peer> peers = find_peers(subject, exchange);
  if (!subject.speaks()) return nullptr;
  json facts{{"setting", subject.network.interface},
             {"exclude", subject.network.exclude},
             {"addresses", json::array()},
             {"routes", json::array()}};
  for (const InterfaceAddress& own : interface_addresses()) facts["addresses"].push_back(to_json(own));
  for (const Peer& peer : peers) {
    if (peer.node == subject.node) continue;
    std::string target;  // by name, as the setting may be what is wrong
    for (const std::string& address : resolve(peer.host)) {
      if (target.empty() && !address.starts_with("127.")) target = address;
    }
    const auto route = route_to(target.empty() ? peer.address : target);
    facts["routes"].push_back({{"host", peer.host},
                               {"address", target.empty() ? peer.address : target},
                               {"local", route ? route->address : ""},
                               {"interface", route ? route->interface : ""}});
  }
  return facts;
}

struct Node {
  const RankFacts& facts;
  std::string setting, exclude;
  std::vector<InterfaceAddress> addresses;
  std::optional<InterfaceAddress> route{};  // of this host, towards the others
};

Node node_of(const RankFacts& facts) {
  Node node{.facts = facts,
            .setting = facts.value.at("setting"),
            .exclude = facts.value.value("exclude", ""),
            .addresses = addresses_from_json(facts.value.at("addresses"))};
  for (const json& route : facts.value.at("routes")) {
    const std::string local = route.at("local");
    for (const InterfaceAddress& own : node.addresses) {
      if (!node.route && own.address == local && !own.loopback) node.route = own;
    }
  }
  return node;
}

std::string setting_line(const Node& node) {
  const std::string network = network_of(node.route->address, node.route->prefix);
  return formatted("LOCKSTEP_INTERFACE={}, and mpirun --mca btl_tcp_if_include {} --mca oob_tcp_if_include {}", network,
                   network, network);
}

// Each entry has to mean something on each host, and none of them the host itself: the job's programs refuse both.
std::optional<Finding> look_at_setting(const Node& node) {
  const auto red = [&](const std::string& item, const char* problem) {
    return Finding{.level = Level::Red,
                   .what = formatted("the network was set to {}, which {}; the route to the others is {} ({})", item,
                                     problem, node.route->interface, node.route->address),
                   .where = node.facts.host,
                   .mend = setting_line(node)};
  };
  for (const std::string& item : items(node.setting)) {
    const auto meant = [&](const InterfaceAddress& own) { return means(item, own); };
    if (std::ranges::none_of(node.addresses, meant))
      return red(item, "is no interface, address or network of this host");
    if (std::ranges::any_of(node.addresses, [&](const auto& own) { return own.loopback && means(item, own); }))
      return red(item, "reaches no other host");
  }
  return std::nullopt;
}

// Whether MPI uses this address between hosts. Open MPI takes either a list of what it is to use or of what not.
bool is_used(const Node& node, const InterfaceAddress& own) {
  if (own.loopback) return false;
  const auto is_meant = [&](const std::string& item) { return means(item, own); };
  if (node.setting.empty()) return std::ranges::none_of(items(node.exclude), is_meant);
  return std::ranges::any_of(items(node.setting), is_meant);
}

// Addresses that several hosts have, as container bridges do: MPI would connect a host to itself.
std::vector<Finding> doubled(const std::vector<Node>& nodes) {
  std::map<std::string, std::vector<const Node*>> by_address;
  for (const Node& node : nodes) {
    for (const InterfaceAddress& own : node.addresses) {
      if (is_used(node, own)) by_address[own.address].push_back(&node);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [address, holders] : by_address) {
    if (holders.size() < 2) continue;
    const Node& first = *holders.front();
    const auto own = std::ranges::find(first.addresses, address, &InterfaceAddress::address);
    std::vector<std::string> names;
    for (const Node* node : holders) names.push_back(node->facts.host);
    findings.push_back({.level = Level::Red,
                        .what = formatted("{} has the address {} on each of these hosts, and MPI would use it between "
                                          "them",
                                          own->interface, address),
                        .where = joined(names, ", "),
                        .mend = setting_line(first)});
  }
  return findings;
}

std::vector<Finding> conclude_interfaces(const Facts& facts) {
  if (facts.size() == 1) return {{.what = "1 host, which needs no network"}};
  std::vector<Finding> findings;
  std::vector<Node> nodes;
  for (const RankFacts& host : facts) {
    Node node = node_of(host);
    if (!node.route) {
      findings.push_back({.level = Level::Red,
                          .what = "no route to the other hosts",
                          .where = host.host,
                          .mend = "ip route get ADDRESS tells which interface should lead there; ip link set DEV up"});
      continue;
    }
    if (!node.setting.empty()) {
      if (auto wrong = look_at_setting(node)) findings.push_back(*std::move(wrong));
    }
    nodes.push_back(std::move(node));
  }
  for (Finding& finding : doubled(nodes)) findings.push_back(std::move(finding));
  std::vector<std::string> routes;
  for (const Node& node : nodes)
    routes.push_back(
        formatted("{} {} {}/{}", node.facts.host, node.route->interface, node.route->address, node.route->prefix));
  return or_green(std::move(findings), "by " + joined(routes, ", "));
}

}  // namespace

const Check kInterfaces{"interfaces", Cost::Thorough, gather_interfaces, conclude_interfaces};

}  // namespace lockstep::preflight
