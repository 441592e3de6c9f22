// Threads of all ranks of a node against its cores, the ranks' affinity masks and the control group's limit.
#include <map>

#include "lockstep/core/error.h"
#include "lockstep/host/placement.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

json gather_cores(const Subject& subject, Exchange&) {
  const host::Cores cores = host::available_cores();
  return {{"threads", subject.threads},
          {"cores", cores.cores},
          {"node_cores", cores.node_cores},
          {"quota", cores.quota},
          {"ranks", subject.local_ranks}};
}

// By node, in the order of ranks. A process that answers for ranks to come has as many as they will be.
std::vector<host::NodePlacement> placements(const Facts& facts) {
  std::map<int, host::NodePlacement> nodes;
  std::map<int, int> processes;
  for (const RankFacts& rank : facts) ++processes[rank.node];
  for (const RankFacts& rank : facts) {
    host::NodePlacement& node = nodes[rank.node];
    node.host = rank.host;
    node.node_cores = rank.value.at("node_cores");
    node.quota = rank.value.at("quota");
    const int stands_for = processes[rank.node] == 1 ? rank.value.at("ranks").get<int>() : 1;
    for (int i = 0; i < stands_for; ++i)
      node.ranks.push_back({.rank = rank.rank + i,
                            .threads = rank.value.at("threads"),
                            .cores = rank.value.at("cores").get<std::vector<int>>()});
  }
  std::vector<host::NodePlacement> all;
  for (auto& [number, node] : nodes) all.push_back(std::move(node));
  return all;
}

std::vector<Finding> conclude_cores(const Facts& facts) {
  std::vector<Finding> findings;
  const std::vector<host::NodePlacement> nodes = placements(facts);
  for (const host::NodePlacement& node : nodes) {
    for (const host::PlacementWarning& warning : host::placement_warnings(node))
      findings.push_back({.level = Level::Yellow, .what = warning.what, .where = node.host, .mend = warning.mend});
  }
  return or_green(std::move(findings),
                  formatted("{}{}", nodes.size() > 1 ? "on the first host " : "", host::describe(nodes.front())));
}

}  // namespace

const Check kCores{"cores", Cost::Cheap, gather_cores, conclude_cores};

}  // namespace lockstep::preflight
