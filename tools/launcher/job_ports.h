// The ports of a job whose range is fixed by --ports: those of Open MPI's daemons and ranks, and of node 0's launcher.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/launch/ports.h"
#include "tools/launcher/launch.h"

namespace lockstep::launcher {

// Nothing without --ports. Throws Error for what is no range, and for one that is too small for a host with so many
// ranks.
std::optional<launch::PortPlan> plan_job_ports(const LaunchOptions& options, const launch::PortNeed& need);

// The ranks of the host with most of them, where the job is started by ssh. Throws Error where --host or --hostfile
// does not say them.
std::int64_t most_ranks_by_ssh(const SshOptions& options);

// The port at which node 0 waits for the other nodes. Throws Error where --master-port and --ports disagree.
int meeting_port(const LaunchOptions& options);

// A port is taken now: that may pass, as the kernel keeps the ports of a job's ranks for 60 s after it.
class PortTaken : public Error {
 public:
  using Error::Error;
};

// Binds, for a moment, what the plan's daemon and this node's ranks will. Throws PortTaken that names a port that is
// taken, and the process that listens there if that can be seen: a daemon has one port, ranks take any of theirs.
// `ranks` 0: none run here.
void check_job_ports(const std::optional<launch::PortPlan>& plan, int ranks);

// A port that is free on this node and none of the plan's, for a program's own use (MASTER_PORT).
int port_for_programs(const std::optional<launch::PortPlan>& plan);

}  // namespace lockstep::launcher
