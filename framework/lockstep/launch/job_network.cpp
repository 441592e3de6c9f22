#include "lockstep/launch/job_network.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::launch {
namespace {

JobNetwork as_set(const HostList& list, const std::string& setting, const NetworkFacts& facts) {
  const bool here = std::ranges::any_of(
      list.hosts, [own = OwnNames::of_this_machine()](const Host& host) { return is_this_machine(host.name, own); });
  JobNetwork network{.reason = "LOCKSTEP_INTERFACE"};
  try {
    network.include = host::include_list(host::choose_interfaces(setting, facts.there, facts.host), facts.there);
  } catch (const Error&) {
    for (std::size_t at = 0; at <= setting.size();) {
      const std::string entry = setting.substr(at, setting.find(',', at) - at);
      at += entry.size() + 1;
      if (here || entry.empty() || host::parse_address(entry)) throw;
    }
    network.include = setting;
    network.warnings.push_back(formatted("{} is none of the hosts: '{}' could not be checked", facts.host, setting));
  }
  return network;
}

// The first address of `name` to which there is a route, IPv4 before IPv6.
std::optional<host::Address> reached(const std::string& name, const NetworkFacts& facts) {
  std::vector<host::Address> addresses = facts.resolve(name);
  std::ranges::stable_sort(addresses, {}, &host::Address::bits);
  for (const host::Address& address : addresses) {
    if (facts.route(address)) return address;
  }
  return addresses.empty() ? std::nullopt : std::optional(addresses[0]);
}

}  // namespace

NetworkFacts NetworkFacts::of_this_machine() {
  NetworkFacts facts{.there = host::interfaces(), .host = host::host_name()};
  facts.route = [there = facts.there](const host::Address& peer) { return host::interface_to(peer, there); };
  return facts;
}

JobNetwork find_network(const HostList& list, const std::string& setting, const NetworkFacts& facts) {
  if (!setting.empty()) return as_set(list, setting, facts);
  JobNetwork found;
  std::optional<host::Network> network;
  std::string first;
  const OwnNames own_names = OwnNames::of_this_machine();
  for (const Host& host : list.hosts) {
    if (is_this_machine(host.name, own_names)) continue;
    const std::optional<host::Address> address = reached(host.name, facts);
    if (!address) {
      found.warnings.push_back(formatted("{} ({}) cannot be resolved on {}: name the network with --interface",
                                         host.name, host.origin, facts.host));
      return found;
    }
    const std::optional<host::Interface> interface = facts.route(*address);
    const bool own = std::ranges::find(facts.there, *address, &host::Interface::address) != facts.there.end();
    if (own && !address->is_loopback()) continue;  // another name of this machine
    if (!interface || address->is_loopback()) {
      found.warnings.push_back(formatted(
          "{} ({}) is {} on {}, which {}: see /etc/hosts, or name the network with --interface", host.name, host.origin,
          address->str(), facts.host, address->is_loopback() ? "is this machine itself" : "has no route to it"));
      return found;
    }
    if (!network) {
      network = interface->network();
      first = host.name;
      found.reason = formatted("{}, the route to {}", interface->name, host.name);
    }
    if (network->base.bits != address->bits) {
      found.warnings.push_back(formatted(
          "{} and {} have addresses of different families: name the network with --interface", first, host.name));
      return found;
    }
    // A host behind a router: a network that holds both, down to the interface's own address on this side.
    while (!network->holds(*address) || !network->holds(interface->address)) {
      *network = host::network_of(network->base, network->prefix - 1);
    }
  }
  constexpr int kWidest = 8;
  if (network && network->prefix < kWidest) {
    found.warnings.push_back(
        formatted("no network narrower than {} holds all hosts: name it with --interface", network->str()));
  } else if (network) {
    found.include = network->str();
  }
  return found;
}

}  // namespace lockstep::launch
