#include "tools/launcher/job_ports.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/master_settings.h"
#include "lockstep/launch/read_hosts.h"
#include "lockstep/preflight/network/sockets.h"
#include "tools/launcher/node.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

constexpr const char* kOtherPorts =
    "expected a range that no other process uses, or one with more ports where a job has ended within the last 60 s";

// Empty: no process listens at this port. Else " by nginx (process 812) (Address already in use)".
std::string why_taken(int port) {
  if (preflight::listen_at(port)) return "";
  const int reason = errno;
  const std::string owner = preflight::listener_of(port);
  return formatted("{}{} ({})", owner.empty() ? "" : " by ", owner, std::strerror(reason));
}

}  // namespace

std::optional<launch::PortPlan> plan_job_ports(const LaunchOptions& options, const launch::PortNeed& need) {
  if (options.mpirun.ports.empty()) return std::nullopt;
  return launch::plan_ports(launch::parse_port_range(options.mpirun.ports), need);
}

std::int64_t most_ranks_by_ssh(const SshOptions& options) {
  const std::string& file = options.hostfile;
  const launch::HostList list = options.hosts.empty() ? launch::parse_hostfile(launch::read_small_file(file), file)
                                                      : launch::parse_host_list(options.hosts, "--host");
  check(!list.hosts.empty() && list.all_slots_said(), "launch",
        "--ports needs the number of ranks of each host; expected slots for all hosts of {}",
        options.hosts.empty() ? file : "--host");
  return std::ranges::max_element(list.hosts, {}, &launch::Host::slots)->slots;
}

int meeting_port(const LaunchOptions& options) {
  const int said = options.meeting.port;
  const auto plan = plan_job_ports(options, {.ranks_per_host = ranks_of_node(options.ranks_per_node), .launch = true});
  if (!plan) return said > 0 ? said : static_cast<int>(launch::kDefaultMasterPort);
  check(said == 0 || said == plan->launch, "launch",
        "--master-port (or MASTER_PORT) is {}, and in --ports {} the port of node 0's launcher is {}; expected that, "
        "or --ports alone",
        said, options.mpirun.ports, plan->launch);
  return plan->launch;
}

void check_job_ports(const std::optional<launch::PortPlan>& plan, int ranks) {
  if (!plan) return;
  for (const int port : {plan->daemon_v4, plan->daemon_v6}) {
    if (const std::string taken = why_taken(port); !taken.empty())
      throw PortTaken(formatted("[launch] port {} of --ports {}, that of Open MPI's daemon on {}, is taken{}; {}", port,
                                plan->all.str(), host_name(), taken, kOtherPorts));
  }
  int free = 0;
  std::string first;
  for (int port = plan->ranks.first; port <= plan->ranks.last && free < ranks; ++port) {
    const std::string taken = why_taken(port);
    if (taken.empty()) ++free;
    if (!taken.empty() && first.empty()) first = formatted("port {} is taken{}", port, taken);
  }
  if (free < ranks)
    throw PortTaken(formatted("[launch] {} ports for ranks are free in --ports {}, and {} has {} ranks: {}; {}", free,
                              plan->all.str(), host_name(), ranks, first, kOtherPorts));
}

int port_for_programs(const std::optional<launch::PortPlan>& plan) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const int port = free_port();
    if (!plan || port < plan->all.first || port > plan->all.last) return port;
  }
  fail("launch",
       "no free port outside of --ports {} among {} of the system's choice, expected one for MASTER_PORT; see "
       "net.ipv4.ip_local_port_range",
       plan->all.str(), kTries);
}

}  // namespace lockstep::launcher
