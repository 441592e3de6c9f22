#include "lockstep/host/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lockstep/core/format.h"

namespace lockstep::host {
namespace {

std::string counted(std::size_t count, const char* noun) {
  return formatted("{} {}{}", count, noun, count == 1 ? "" : "s");
}
std::string counted(int count, const char* noun) { return counted(static_cast<std::size_t>(count), noun); }

std::string range_text(auto lowest, auto highest) {
  return lowest == highest ? formatted("{}", lowest) : formatted("{} to {}", lowest, highest);
}

// Returns "rank 3" or "ranks 0-3,7".
std::string names(const std::vector<const RankPlacement*>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = ++last) {
    while (last + 1 < ranks.size() && ranks[last + 1]->rank == ranks[last]->rank + 1) ++last;
    runs.push_back(first == last ? formatted("{}", ranks[first]->rank)
                                 : formatted("{}-{}", ranks[first]->rank, ranks[last]->rank));
  }
  return formatted("rank{} {}", ranks.size() == 1 ? "" : "s", joined(runs, ","));
}

int total_threads(const std::vector<const RankPlacement*>& ranks) {
  return std::accumulate(ranks.begin(), ranks.end(), 0, [](int sum, const auto* rank) { return sum + rank->threads; });
}

std::vector<const RankPlacement*> pointers(const NodePlacement& node) {
  std::vector<const RankPlacement*> all;
  for (const RankPlacement& rank : node.ranks) all.push_back(&rank);
  return all;
}

int cores_in_use(const NodePlacement& node) {
  std::set<int> used;
  for (const RankPlacement& rank : node.ranks) used.insert(rank.cores.begin(), rank.cores.end());
  return static_cast<int>(used.size());
}

std::string threads_each(const std::vector<const RankPlacement*>& ranks) {
  const auto [fewest, most] = std::ranges::minmax_element(ranks, {}, [](const auto* rank) { return rank->threads; });
  return formatted("{} x {} thread{}", counted(ranks.size(), "rank"), range_text((*fewest)->threads, (*most)->threads),
                   (*most)->threads == 1 ? "" : "s");
}

// Returns, for each mask from small to large, the ranks whose masks lie within it: together they can use only its
// cores.
auto ranks_within_masks(const NodePlacement& node) {
  std::map<std::pair<std::size_t, std::vector<int>>, std::vector<const RankPlacement*>> by_mask;
  for (const RankPlacement& rank : node.ranks) by_mask[{rank.cores.size(), rank.cores}];
  for (auto& [mask, inside] : by_mask) {
    for (const RankPlacement& rank : node.ranks) {
      if (std::ranges::includes(mask.second, rank.cores)) inside.push_back(&rank);
    }
  }
  return by_mask;
}

}  // namespace

std::string describe(const NodePlacement& node) {
  const auto [fewest, most] =
      std::ranges::minmax_element(node.ranks, {}, [](const RankPlacement& rank) { return rank.cores.size(); });
  std::string text = formatted("{} on {}, ", threads_each(pointers(node)), counted(node.node_cores, "core"));
  if (node.quota > 0 && node.quota < node.node_cores) text += formatted("limited to the time of {:.3g}, ", node.quota);
  if (static_cast<int>(fewest->cores.size()) >= node.node_cores) return text + "not bound";
  text += formatted("{}bound to {}", node.ranks.size() == 1 ? "" : "each ",
                    range_text(fewest->cores.size(), most->cores.size()));
  const int idle = node.node_cores - cores_in_use(node);
  return idle > 0 ? text + formatted(", {} left idle", idle) : text;
}

std::vector<PlacementWarning> placement_warnings(const NodePlacement& node) {
  const std::vector<const RankPlacement*> all = pointers(node);
  const int total = total_threads(all);
  const bool by_quota = node.quota > 0 && node.quota < node.node_cores;
  if (total > node.node_cores || (by_quota && total > node.quota)) {
    return {{formatted("{} ({}) are more than the {} and take turns", threads_each(all), names(all),
                       by_quota ? formatted("{:.3g} cores of the container's CPU limit", node.quota)
                                : counted(node.node_cores, "core")),
             "use fewer ranks or --threads"}};
  }
  std::vector<PlacementWarning> warnings;
  std::map<std::pair<int, int>, std::vector<const RankPlacement*>> narrow;  // by cores and threads
  std::set<int> told;
  for (const auto& [mask, inside] : ranks_within_masks(node)) {
    const int cores = static_cast<int>(mask.first), wanted = total_threads(inside);
    if (wanted <= cores || std::ranges::any_of(inside, [&](const auto* rank) { return told.contains(rank->rank); }))
      continue;
    for (const RankPlacement* rank : inside) told.insert(rank->rank);
    if (inside.size() == 1) {
      narrow[{cores, wanted}].push_back(inside.front());
      continue;
    }
    const int idle = node.node_cores - cores_in_use(node);
    warnings.push_back(
        {formatted("{} share {} for {} threads{}", names(inside), counted(cores, "core"), wanted,
                   idle > 0 ? formatted(", while {} of the node's {} are left idle", idle, node.node_cores) : ""),
         "mpirun --bind-to none lets them spread"});
  }
  for (const auto& [shape, ranks] : narrow) {
    const auto [cores, threads] = shape;
    const bool one = ranks.size() == 1;
    warnings.push_back({formatted("{} {} bound to {} and {} {} threads", names(ranks), one ? "is" : "are each",
                                  counted(cores, "core"), one ? "has" : "have", threads),
                        formatted("mpirun --bind-to none, or --map-by slot:PE={} --bind-to core", threads)});
  }
  return warnings;
}

}  // namespace lockstep::host
