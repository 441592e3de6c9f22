#include "tools/launcher/job_ports.h"

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/master_settings.h"
#include "lockstep/launch/read_hosts.h"
#include "tools/launcher/node.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {

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
