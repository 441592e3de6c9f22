// The addresses (IPv4, as MPI's TCP transport uses them) and routes of this host, in the texts that travel between
// hosts. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::preflight {

struct InterfaceAddress {
  std::string interface, address;  // "eth0", "10.1.0.3"
  int prefix = 0;                  // bits of the network
  bool loopback = false;
  bool bridge = false;  // of containers or virtual machines of this host, as docker0
};
// Of interfaces that are up.
std::vector<InterfaceAddress> interface_addresses();

// Addresses of a name, or the address itself; empty: it does not resolve. A name is looked up once in a process, as
// several checks ask, and a name server that does not answer takes its time.
std::vector<std::string> resolve(const std::string& name);
// The same of many names, which are looked up side by side.
std::vector<std::vector<std::string>> resolve_all(const std::vector<std::string>& names);

struct Route {
  std::string address, interface;  // of this host, by which it reaches the other
};
std::optional<Route> route_to(const std::string& address);

// "10.1.0.0/16" of an address with a prefix.
std::string network_of(std::string_view address, int prefix);
// Whether `item` of a list as LOCKSTEP_INTERFACE takes it means this one, as for host::choose_interfaces(): a name, a
// network, or an address, of whatever host, in the network of this one.
bool means(std::string_view item, const InterfaceAddress& interface);
std::vector<std::string> items(std::string_view list);  // of a list with commas

}  // namespace lockstep::preflight
