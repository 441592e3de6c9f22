#include "lockstep/launch/job_command.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "hosts";

void check_names(const HostList& list, const JobCommand& command) {
  constexpr std::string_view expected = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
  for (const Host& host : list.hosts) {
    check(host.name.find_first_not_of(expected) == host.name.npos, kSite,
          "{}: Open MPI 4.1 refuses the name '{}': it takes letters, digits, dots and hyphens; give the host such a "
          "name in /etc/hosts and write that",
          host.origin, host.name);
    check(host.user.empty() || !command.hostfile.empty(), kSite,
          "{}: Open MPI 4.1 takes no USER@ in -H; write a hostfile (--to hostfile > hosts) and name that", host.origin);
  }
}

}  // namespace

std::vector<std::string> mpirun_words(const HostList& list, const JobCommand& command) {
  check_names(list, command);
  std::vector<std::string> words{"mpirun"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  const bool several = list.hosts.size() > 1;
  if (command.root) add({"--allow-run-as-root"});
  if (list.all_slots_said()) add({"-n", std::to_string(list.slots())});
  command.hostfile.empty() ? add({"-H", to_host_list(list)}) : add({"--hostfile", command.hostfile});
  // Neighbours in rank are neighbours on a host; programs share the cores of a host out by themselves, where Open MPI
  // would bind each of two ranks to one core.
  add({"--map-by", "slot", "--bind-to", "none"});
  if (command.ssh_port > 0) add({"--mca", "plm_rsh_args", formatted("-p {}", command.ssh_port)});
  if (several && !command.network.empty()) {
    add({"--mca", "oob_tcp_if_include", command.network, "--mca", "btl_tcp_if_include", command.network});
    if (!command.interface_per_rank.empty())
      add({"-x", formatted("LOCKSTEP_INTERFACE={}", command.interface_per_rank), "-x",
           "LOCKSTEP_INTERFACE_POLICY=rank"});
  }
  if (command.ports) {
    for (const auto& [name, value] : port_parameters(*command.ports)) add({"--mca", name, value});
  }
  if (several) {  // a host that falls silent ends the job after some 11 s; Open MPI's defaults never notice
    add({"--mca", "oob_tcp_keepalive_time", "5", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca",
         "oob_tcp_keepalive_probes", "6"});
  }
  if (command.threads > 0) add({"-x", formatted("OMP_NUM_THREADS={}", command.threads)});
  words.insert(words.end(), command.program.begin(), command.program.end());
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace lockstep::launch
