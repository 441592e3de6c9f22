// Limits of the shell or the scheduler (ulimit) that stop a job sooner or later.
#include <sys/resource.h>

#include <map>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

struct Limit {
  const char* name;
  __rlimit_resource resource;
  double unit;   // bytes of a unit in which the limit is told
  double least;  // in units
  const char* what;
  const char* mend;
};
// Each rank has a connection to every other rank, besides its files.
const Limit kLimitTable[] = {
    {"files", RLIMIT_NOFILE, 1, 512, "open files (ulimit -n)", "ulimit -n 65536, or LimitNOFILE= of the service"},
    {"processes", RLIMIT_NPROC, 1, 512, "processes and threads (ulimit -u)", "ulimit -u unlimited"},
    {"addresses", RLIMIT_AS, 1 << 20, 4096, "MiB of address space (ulimit -v)", "ulimit -v unlimited"},
    {"file-size", RLIMIT_FSIZE, 1 << 20, 4096, "MiB in a file (ulimit -f)", "ulimit -f unlimited"},
    {"data", RLIMIT_DATA, 1 << 20, 4096, "MiB of data (ulimit -d)", "ulimit -d unlimited"},
    {"stack", RLIMIT_STACK, 1 << 20, 1, "MiB of stack (ulimit -s)", "ulimit -s 8192"},
};

json gather_limits(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  json limits = json::object();
  for (const Limit& row : kLimitTable) {
    rlimit limit{};
    if (getrlimit(row.resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      limits[row.name] = static_cast<double>(limit.rlim_cur) / row.unit;
  }
  return limits;
}

std::vector<Finding> conclude_limits(const Facts& facts) {
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    for (const Limit& row : kLimitTable) {
      if (!node.value.contains(row.name) || node.value.at(row.name).get<double>() >= row.least) continue;
      findings.push_back({.level = Level::Yellow,
                          .what = formatted("at most {:.0f} {}, expected {:.0f} or more",
                                            node.value.at(row.name).get<double>(), row.what, row.least),
                          .where = node.host,
                          .mend = row.mend});
    }
  }
  return or_green(std::move(findings), "no limit that is too low");
}

}  // namespace

const Check kLimits{"limits", Cost::Cheap, gather_limits, conclude_limits};

}  // namespace lockstep::preflight
