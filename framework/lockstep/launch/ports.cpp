#include "lockstep/launch/ports.h"

#include <charconv>

#include "lockstep/core/error.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "ports";
constexpr int kDaemonPorts = 2;

int port_from(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value <= 65535 ? value : 0;
}

}  // namespace

std::string PortRange::str() const { return formatted("{}-{}", first, last); }

PortRange parse_port_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const PortRange range{.first = port_from(text.substr(0, dash)),
                        .last = dash == text.npos ? 0 : port_from(text.substr(dash + 1))};
  check(range.first >= 1024 && range.last >= range.first, kSite,
        "'{}', expected a range FIRST-LAST of ports from 1024 to 65535, as 60000-60015", text.substr(0, 40));
  return range;
}

std::int64_t ports_needed(const PortNeed& need, bool again) {
  return kDaemonPorts + (need.launch ? 1 : 0) + need.ranks_per_host * (again ? 2 : 1);
}

PortPlan plan_ports(const PortRange& range, const PortNeed& need) {
  const std::int64_t needed = ports_needed(need);
  check(range.count() >= needed, kSite,
        "{} are {} ports, but a host with {} ranks needs {}: {} for the daemon, {}{} for the ranks; expected at least "
        "{}-{}, better {}-{}, so that a job can start within 60 s of the last one",
        range.str(), range.count(), need.ranks_per_host, needed, kDaemonPorts, need.launch ? "1 for launch, " : "",
        need.ranks_per_host, range.first, range.first + needed - 1, range.first,
        range.first + ports_needed(need, true) - 1);
  PortPlan plan{.all = range, .daemon_v4 = range.first, .daemon_v6 = range.first + 1};
  int next = range.first + kDaemonPorts;
  if (need.launch) plan.launch = next++;
  plan.ranks = {next, range.last};
  return plan;
}

std::vector<std::pair<std::string, std::string>> port_parameters(const PortPlan& plan) {
  // A daemon listens at every port of its list, so a list is one port. A rank takes the first free one of its range,
  // the same numbers for IPv4 and IPv6.
  const std::string first = std::to_string(plan.ranks.first), count = std::to_string(plan.ranks.count());
  return {{"oob_tcp_dynamic_ipv4_ports", std::to_string(plan.daemon_v4)},
          {"oob_tcp_dynamic_ipv6_ports", std::to_string(plan.daemon_v6)},
          {"btl_tcp_port_min_v4", first},
          {"btl_tcp_port_range_v4", count},
          {"btl_tcp_port_min_v6", first},
          {"btl_tcp_port_range_v6", count}};
}

std::string opening_command(FirewallTool tool, const PortRange& ports, const std::string& network,
                            const std::string& chain) {
  const bool six = network.find(':') != network.npos;
  switch (tool) {
    case FirewallTool::Ufw:
      return formatted("ufw allow proto tcp from {} to any port {}:{}", network.empty() ? "any" : network, ports.first,
                       ports.last);
    case FirewallTool::Firewalld:
      return formatted("firewall-cmd --permanent {} && firewall-cmd --reload",
                       network.empty() ? formatted("--add-port={}/tcp", ports.str())
                                       : formatted("--add-rich-rule='rule family={} source address={} port port={} "
                                                   "protocol=tcp accept'",
                                                   six ? "ipv6" : "ipv4", network, ports.str()));
    case FirewallTool::Nftables:  // a rule that is added stands behind one that refuses all else
      return formatted("nft insert rule {} {}tcp dport {} accept", chain,
                       network.empty() ? "" : formatted("{} saddr {} ", six ? "ip6" : "ip", network), ports.str());
  }
  return "";
}

std::vector<std::string> port_commands(const PortRange& range, const std::string& network) {
  std::vector<std::string> commands{formatted("sysctl -w net.ipv4.ip_local_reserved_ports={}", range.str())};
  for (const FirewallTool tool : {FirewallTool::Ufw, FirewallTool::Firewalld, FirewallTool::Nftables})
    commands.push_back(opening_command(tool, range, network));
  return commands;
}

}  // namespace lockstep::launch
