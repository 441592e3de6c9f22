#include "tools/launcher/mpirun_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/launcher/hydra_line.h"

namespace lockstep::launcher {
namespace {

void add_agents(launch::MpirunWords& words, const MpirunLine& line) {
  // Every way is excluded but that by agents (rsh in Open MPI 4, ssh in 5). mpirun of 5 knows the other names of 4.
  words.add({"--mca", "plm", "^slurm,tm,lsf,alps,pals,isolated"});
  words.add({"--mca", "plm_rsh_agent", line.own_name + " launch-agent"});
  // In the place of options for ssh that the environment or a file of Open MPI's has. Not empty: mpirun of 5.0.7
  // crashes.
  words.add({"--mca", "plm_rsh_args", "host"});
  // Each daemon is started by mpirun itself, and stays the child of the launcher that started it.
  words.add({"--mca", "plm_rsh_no_tree_spawn", "1", "--leave-session-attached"});
  words.add({"--mca", "plm_rsh_num_concurrent", std::to_string(std::max(128, line.agents))});
  words.add({"--mca", "ras", "^slurm"});  // the nodes are those that came, whatever Slurm knows
}

}  // namespace

std::vector<std::string> mpirun_words(const MpirunLine& line, const ReadVariable& variable) {
  if (line.kind == launch::MpirunKind::Hydra) return hydra_words(line);
  launch::MpirunWords words(line.extra, variable);
  if (line.agents > 0) add_agents(words, line);
  if (!line.network.empty()) {
    words.add_network("oob_tcp", line.network);
    if (!variable("LOCKSTEP_INTERFACE")) words.add_network("btl_tcp", line.network);
  }
  if (line.ports) words.add_ports(*line.ports);
  if (!line.hosts.empty()) words.add({"--host", line.hosts});
  if (!line.hostfile.empty()) words.add({"--hostfile", line.hostfile});
  if (line.ranks > 0) words.add({"-n", std::to_string(line.ranks)});
  words.add_mapping();
  words.add_no_binding();
  for (const auto& [name, value] : line.variables) words.add({"-x", fmt::format("{}={}", name, value)});
  if (line.ssh_port > 0) words.add_ssh_arguments(fmt::format("-p {}", line.ssh_port));
  std::vector<std::string> program{line.own_name, "launch-rank"};
  program.insert(program.end(), line.program.begin(), line.program.end());
  return words.with(program);
}

}  // namespace lockstep::launcher
