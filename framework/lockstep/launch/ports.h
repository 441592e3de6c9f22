// A fixed range of ports for a job: which of them Open MPI's daemons, its ranks and `lockstep launch` take on each
// host, how many that is, and what firewalls and kernels have to be told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

struct PortRange {
  int first = 0, last = 0;  // 0: any port
  bool any() const { return first == 0; }
  int count() const { return last - first + 1; }
  std::string str() const;  // 60000-60015
};

PortRange parse_port_range(std::string_view text);  // "60000-60015"; throws Error

struct PortNeed {
  std::int64_t ranks_per_host = 0;  // of the host with most of them
  bool launch = false;              // the job is started by `lockstep launch`, whose node 0 listens as well
};

// The ports that the host with most ranks needs: 2 for the daemon (one each for IPv4 and IPv6), 1 for launch, 1 per
// rank. `again`: so that a job can start within 60 s of the last one, whose ranks' ports the kernel keeps in TIME_WAIT
// for that time: 1 more per rank.
std::int64_t ports_needed(const PortNeed& need, bool again = false);

// The ports of a job, the same on every host.
struct PortPlan {
  PortRange all{};
  int daemon_v4 = 0, daemon_v6 = 0;
  int launch = 0;  // 0: none
  PortRange ranks{};
};

// Throws Error, with the number needed, where the range is too small.
PortPlan plan_ports(const PortRange& range, const PortNeed& need);

// Open MPI's parameters for it.
std::vector<std::pair<std::string, std::string>> port_parameters(const PortPlan& plan);

enum class FirewallTool : std::uint8_t { Ufw, Firewalld, Nftables };
// The command that opens `ports` to `network` ("10.1.0.0/16"; empty: to all), before any rule that refuses, also after
// the firewall is started again where its tool keeps rules. `chain` is the one of nftables that takes the rule.
std::string opening_command(FirewallTool tool, const PortRange& ports, const std::string& network,
                            const std::string& chain = "inet filter input");

// One line for each host's administrator: that outgoing connections leave the ports alone, and what opens them in each
// firewall, to `network` alone if it is known.
std::vector<std::string> port_commands(const PortRange& range, const std::string& network);

}  // namespace lockstep::launch
