// The packet filter of a host, as far as it may be seen, and the line that lets connections through. Pure but for
// firewall_here().
#pragma once

#include <string>

#include "lockstep/launch/ports.h"

namespace lockstep::preflight {

struct Firewall {
  std::string tool{};   // "ufw", "firewalld", "nftables"; empty: none was seen
  std::string chain{};  // of nftables: "inet filter input"
};

// From what `nft -j list ruleset` prints (empty: not to be seen), and whether ufw and firewalld are at work. A rule set
// counts that refuses or drops something on its way to this host: in a chain at the input hook, or in one to which that
// leads.
Firewall firewall_of(const std::string& ruleset, bool ufw, bool firewalld);
// Runs nft and firewall-cmd, where they are.
Firewall firewall_here();

// The command that opens `ports` to hosts of `network` ("10.1.0.0/16").
std::string opening_line(const Firewall& firewall, const std::string& network, const launch::PortRange& ports);

}  // namespace lockstep::preflight
