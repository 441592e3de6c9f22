// Two machines with one host name: Open MPI takes them for one, and its shared memory for common.
#include <map>
#include <set>

#include "lockstep/comm/topology.h"
#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

nlohmann::json gather_host_names(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  // Domains of one machine have one key.
  return {{"name", subject.host}, {"key", comm::detect_identity("").key}};
}

std::vector<Finding> conclude_host_names(const Facts& facts) {
  std::map<std::string, std::set<std::string>> nodes;  // keys by name
  for (const RankFacts& node : facts)
    nodes[node.value.at("name").get<std::string>()].insert(node.value.at("key").get<std::string>());
  std::vector<Finding> findings;
  for (const auto& [name, keys] : nodes) {
    if (keys.size() > 1)
      findings.push_back({.level = Level::Red,
                          .what = formatted("{} nodes bear the host name {}, expected one: MPI may take them for one "
                                            "machine and fail",
                                            keys.size(), name),
                          .where = name,
                          .mend = "hostnamectl set-hostname NAME on all but one, or docker run --hostname NAME"});
  }
  return or_green(std::move(findings),
                  nodes.size() == 1 ? "1 host" : formatted("{} hosts of different names", nodes.size()));
}

}  // namespace

const Check kHostNames{"host-names", Cost::Cheap, gather_host_names, conclude_host_names};

}  // namespace lockstep::preflight
