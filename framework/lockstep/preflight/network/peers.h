// The facts that the thorough checks of the network have of the other hosts: each host's addresses, and the one to
// connect to.
#pragma once

#include <string>
#include <vector>

#include "lockstep/preflight/check.h"
#include "lockstep/preflight/network/addresses.h"

namespace lockstep::preflight {

struct Peer {
  int rank = 0, node = 0;
  std::string host;  // the name by which it is reached
  std::vector<InterfaceAddress> addresses{};
  std::string address{};  // to connect to from here; empty: none is known
};

// Of the ranks that speak for a node, by node; the same length on all ranks. Collective.
std::vector<Peer> find_peers(const Subject& subject, Exchange& exchange);

nlohmann::json to_json(const InterfaceAddress& address);
InterfaceAddress address_from_json(const nlohmann::json& value);
std::vector<InterfaceAddress> addresses_from_json(const nlohmann::json& list);

}  // namespace lockstep::preflight
