#include "tools/launcher/hydra_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/read_hosts.h"

namespace lockstep::launcher {
namespace {

launch::HostList hosts_of(const MpirunLine& line) {
  launch::HostList list = line.hostfile.empty()
                              ? launch::parse_host_list(line.hosts, "--host")
                              : launch::parse_hostfile(launch::read_small_file(line.hostfile), line.hostfile);
  check(list.all_slots_said(), "launch",
        "MPICH's mpiexec needs the ranks of each host; expected slots for all hosts of {}",
        line.hostfile.empty() ? "--host" : line.hostfile);
  for (const launch::Host& host : list.hosts) {
    check(host.user.empty() && host.name.find(':') == host.name.npos, "launch",
          "{}: MPICH's mpiexec takes no user and no IPv6 address in a list of hosts; expected a name (ssh's "
          "configuration can give it both)",
          host.origin);
  }
  return list;
}

void add_hosts(std::vector<std::string>& words, const MpirunLine& line) {
  const launch::HostList list = hosts_of(line);
  std::vector<std::int64_t> slots;
  for (const launch::Host& host : list.hosts) slots.push_back(host.slots);
  words.insert(words.end(), {"-launcher", "ssh", "-hosts", launch::to_host_list(list), "-n",
                             std::to_string(line.ranks > 0 ? line.ranks : list.slots()), "-genv", kSlotsVariable,
                             fmt::format("{}", fmt::join(slots, ","))});
}

}  // namespace

std::vector<std::string> hydra_words(const MpirunLine& line) {
  check(line.agents == 0, "launch",
        "a job of several nodes without ssh is started by Open MPI's mpirun, and this program is linked with another "
        "MPI; expected --host or --hostfile, or mpiexec itself");
  check(!line.ports, "launch", "--ports is for Open MPI; expected none with this MPI, whose ranks take any port");
  std::vector<std::string> words{"mpirun"};
  if (line.here) {
    words.insert(words.end(), {"-launcher", "fork", "-rmk", "user", "-n", std::to_string(line.ranks)});
  } else {
    add_hosts(words, line);
  }
  for (const auto& [name, value] : line.variables) words.insert(words.end(), {"-genv", name, value});
  words.insert(words.end(), line.extra.begin(), line.extra.end());
  words.insert(words.end(), {line.own_name, "launch-rank"});
  words.insert(words.end(), line.program.begin(), line.program.end());
  return words;
}

std::map<std::string, std::string> hydra_variables(const MpirunLine& line) {
  if (line.ssh_port == 0) return {};
  return {{"HYDRA_LAUNCHER_EXTRA_ARGS", fmt::format("-p {}", line.ssh_port)}};
}

int host_of_rank(const std::string& slots, int rank) {
  std::istringstream stream(slots);
  int host = 0;
  for (std::string text; std::getline(stream, text, ','); ++host) {
    rank -= std::stoi(text);
    if (rank < 0) return host;
  }
  return 0;
}

}  // namespace lockstep::launcher
