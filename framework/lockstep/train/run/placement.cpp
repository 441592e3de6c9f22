#include "lockstep/train/run/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/host/machine.h"
#include "lockstep/host/placement.h"

namespace lockstep::train {

int requested_threads(const Options& options) {
  // With shards the bits depend on the threads per rank, so the default must not depend on the number of ranks; with
  // portable bits nothing depends on threads.
  const bool one = options.trainer.shards > 0 && !options.trainer.is_portable();
  return options.threads > 0 ? options.threads : one ? 1 : host::environment_threads();
}

std::string sharing_domain(const Options& options) {
  return options.sharing_domain == SharingDomain::Numa
             ? "numa " + host::Machine::here().numa_nodes(host::process_cpus())
             : "";
}

host::ThreadBudget share_threads(const comm::Communicator& comm, const Options& options) {
  const host::Cores cores = host::available_cores();
  const comm::Communicator& node = comm.group("node");
  std::vector<std::vector<int>> masks;
  for (const std::string& text : node.allgather_strings(fmt::format("{}", fmt::join(cores.cpus, ",")))) {
    masks.push_back(host::parse_cpu_list(text));
  }
  return host::budget(cores, {.local_ranks = comm.local_size(),
                              .sharing = host::ranks_sharing(masks, comm.local_rank()),
                              .threads = requested_threads(options),
                              .loaders = options.loaders});
}

std::string placement_summary(const comm::Communicator& comm, const host::ThreadBudget& threads) {
  const host::Cores cores = host::available_cores();
  host::NodePlacement here{.host = comm.host(), .node_cores = cores.node_cores, .quota = cores.quota};
  const comm::Communicator& node = comm.group("node");
  const std::string mine = fmt::format("{} {} {}", comm.rank(), threads.compute, fmt::join(cores.cores, ","));
  for (const std::string& text : node.allgather_strings(mine)) {
    std::istringstream fields(text);
    host::RankPlacement rank;
    std::string list;
    fields >> rank.rank >> rank.threads >> list;
    rank.cores = host::parse_cpu_list(list);
    here.ranks.push_back(std::move(rank));
  }
  const bool speaks = comm.local_rank() == 0;
  std::map<std::string, std::vector<std::string>> hosts;  // by their placement
  const std::vector<std::string> all = comm.allgather_strings(speaks ? describe(here) : "");
  for (int r = 0; r < comm.size(); ++r) {
    if (const std::string& text = all[static_cast<std::size_t>(r)]; !text.empty())
      hosts[text].push_back(comm.topology().host(r));
  }
  std::string summary;
  for (const auto& [text, names] : hosts) {
    summary += summary.empty() ? "" : "; ";
    summary += hosts.size() > 1        ? fmt::format("{}: {}", fmt::join(names, ","), text)
               : comm.node_count() > 1 ? fmt::format("on each host {}", text)
                                       : text;
  }
  return summary;
}

std::string host_list(const comm::Communicator& comm) {
  std::vector<std::pair<std::string, int>> nodes(static_cast<std::size_t>(comm.node_count()));
  for (int r = 0; r < comm.size(); ++r) {
    auto& [host, ranks] = nodes[static_cast<std::size_t>(comm.topology().node_of(r))];
    host = comm.topology().host(r);
    ++ranks;
  }
  std::string text;
  for (const auto& [host, ranks] : nodes) {
    text += fmt::format("{}{} ({} rank{})", text.empty() ? "" : ", ", host, ranks, ranks == 1 ? "" : "s");
  }
  return text;
}

}  // namespace lockstep::train
