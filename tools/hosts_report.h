// The report of `lockstep hosts` on a job: as text, as JSON, or in another form of a list of hosts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/job_command.h"
#include "lockstep/launch/job_network.h"
#include "lockstep/launch/read_hosts.h"

namespace lockstep::tools {

struct HostsReport {
  launch::HostsRead read{};
  std::string source{};  // "hosts", "-H", "the environment"
  launch::JobNetwork network{};
  launch::JobCommand command{};
  std::vector<std::string> port_notes{};

  // The hosts of the job are known, not the first alone.
  bool has_all_hosts() const { return !read.master || read.master->nodes == 1; }
  // The words that start the job: mpirun's, or `lockstep launch` where each node comes by itself.
  std::vector<std::string> start_words() const;
  // For the administrators of the hosts; with the network alone where it is one network and not a name. Only with
  // ports.
  std::vector<std::string> port_commands() const;
};

std::string as_text(const HostsReport& report);
std::string as_json(const HostsReport& report);
// `form`: hostfile, host-list, rank-table, slurm or mpirun. Throws Error where the form cannot say what is to be said.
std::string converted(const HostsReport& report, const std::string& form);

}  // namespace lockstep::tools
