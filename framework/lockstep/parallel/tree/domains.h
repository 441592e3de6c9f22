// The groups of ranks for the reduction: the ranks of one domain read each other's memory, domains exchange messages. A
// domain is a node (or a NUMA domain), or a single rank where only messages are used. A value, equal on every rank
// except for `rank`.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/comm/topology.h"

namespace lockstep::parallel {

struct Domains {
  int rank = 0;
  std::vector<int> domain_of;             // by rank
  std::vector<std::vector<int>> members;  // by domain: its ranks, ascending

  static Domains nodes(const comm::Topology& topology, int rank, int size) {
    Domains d{.rank = rank};
    d.members.resize(static_cast<std::size_t>(topology.node_count()));
    for (int r = 0; r < size; ++r) {
      d.domain_of.push_back(topology.node_of(r));
      d.members[static_cast<std::size_t>(topology.node_of(r))].push_back(r);
    }
    return d;
  }
  static Domains single_ranks(int rank, int size) {
    Domains d{.rank = rank};
    for (int r = 0; r < size; ++r) {
      d.domain_of.push_back(r);
      d.members.push_back({r});
    }
    return d;
  }

  int size() const { return static_cast<int>(domain_of.size()); }
  int count() const { return static_cast<int>(members.size()); }
  int mine() const { return domain_of[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& of(int domain) const { return members[static_cast<std::size_t>(domain)]; }
  const std::vector<int>& local() const { return of(mine()); }
  int local_size() const { return static_cast<int>(local().size()); }
  int local_rank() const { return static_cast<int>(std::ranges::find(local(), rank) - local().begin()); }
  // The number of slices of a bucket: the number of ranks of the largest domain. In a smaller domain some ranks drive
  // several slices.
  int slices() const {
    return static_cast<int>(std::ranges::max(members, {}, [](const auto& ranks) { return ranks.size(); }).size());
  }
  int driver(int domain, int slice) const {
    const auto& ranks = of(domain);
    return ranks[static_cast<std::size_t>(slice) % ranks.size()];
  }
};

}  // namespace lockstep::parallel
