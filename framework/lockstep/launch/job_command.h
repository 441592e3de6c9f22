// The mpirun command of Open MPI for a list of hosts, whole: network, ssh, mapping, binding, ports, and how soon a host
// that has gone silent is noticed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/host_list.h"
#include "lockstep/launch/mpirun_words.h"
#include "lockstep/launch/ports.h"

namespace lockstep::launch {

struct JobCommand {
  std::string hostfile{};            // the hosts' file for Open MPI; empty: they are written into the command
  std::string network{};             // "10.1.0.0/16" or "eth0,eth1", for btl and oob; empty: Open MPI's own choice
  std::string interface_per_rank{};  // LOCKSTEP_INTERFACE for the policy rank, in the order of ranks; empty: policy all
  int ssh_port = 0;                  // 0: ssh's own choice
  std::string ssh_arguments{};       // further words for ssh
  std::int64_t threads = 0;          // per rank; 0: programs share the cores out themselves
  std::optional<PortPlan> ports{};
  bool root = false;                   // mpirun is started by root
  std::vector<std::string> own{};      // the user's words for mpirun
  ReadVariable variable{};             // of mpirun's environment; empty: it is not known
  std::vector<std::string> program{};  // with its arguments
};

// All words for ssh before the name of a host, as plm_rsh_args takes them.
std::string ssh_arguments(const JobCommand& command);

// Throws Error for hosts that Open MPI 4.1 cannot be told: a user or slots without number in -H, names with other
// characters than letters, digits, dots and hyphens.
std::vector<std::string> mpirun_words(const HostList& list, const JobCommand& command);

// A word as a shell reads it, whatever is in it.
std::string shell_quoted(const std::string& word);
// As one line for a shell, in which plain words stand without quotes.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace lockstep::launch
