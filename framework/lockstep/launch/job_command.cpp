#include "lockstep/launch/job_command.h"

#include <string_view>

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

std::string ssh_arguments(const JobCommand& command) {
  std::string all = command.ssh_port == 0 ? "" : formatted("-p {}", command.ssh_port);
  if (!all.empty() && !command.ssh_arguments.empty()) all += ' ';
  return all + command.ssh_arguments;
}

std::vector<std::string> mpirun_words(const HostList& list, const JobCommand& command) {
  check_names(list, command);
  MpirunWords words(command.own, command.variable);
  const bool several = list.hosts.size() > 1;
  if (command.root) words.add({"--allow-run-as-root"});
  if (list.all_slots_said()) words.add({"-n", std::to_string(list.slots())});
  command.hostfile.empty() ? words.add({"-H", to_host_list(list)}) : words.add({"--hostfile", command.hostfile});
  words.add_mapping();
  words.add_no_binding();
  if (const std::string ssh = ssh_arguments(command); !ssh.empty()) words.add_ssh_arguments(ssh);
  if (several && !command.network.empty()) {
    words.add_network("oob_tcp", command.network);
    words.add_network("btl_tcp", command.network);
    if (!command.interface_per_rank.empty())
      words.add({"-x", formatted("LOCKSTEP_INTERFACE={}", command.interface_per_rank), "-x",
                 "LOCKSTEP_INTERFACE_POLICY=rank"});
  }
  if (command.ports) words.add_ports(*command.ports);
  if (several) {
    for (const auto& [name, value] : keepalive_parameters()) words.add_parameter(name, value);
  }
  if (command.threads > 0) words.add({"-x", formatted("OMP_NUM_THREADS={}", command.threads)});
  return words.with(command.program);
}

std::string shell_quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    const bool is_plain = !word.empty() && word.find_first_not_of(plain) == word.npos;
    line += is_plain ? word : shell_quoted(word);
  }
  return line;
}

}  // namespace lockstep::launch
