#include "tools/supervisor/hosts.h"

#include <algorithm>

namespace lockstep::supervisor {

std::optional<std::int64_t> ranks_for(const launch::HostList& alive, const launch::HostList& all,
                                      std::optional<std::int64_t> wanted) {
  if (!wanted || alive.hosts.size() == all.hosts.size()) return wanted;
  const auto hosts = [](const launch::HostList& some) { return static_cast<std::int64_t>(some.hosts.size()); };
  if (!all.all_slots_said()) return *wanted * hosts(alive) / hosts(all);
  if (all.slots() < *wanted) return *wanted * alive.slots() / all.slots();
  return std::min(*wanted, alive.slots());
}

}  // namespace lockstep::supervisor
