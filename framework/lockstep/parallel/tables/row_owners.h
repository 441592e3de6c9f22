// The ranks that own rows. A group of ranks has one copy of all tables, and each rank of the group owns a part of the
// rows: it alone updates them. Sharded tables have one group, all ranks of the job; replicated ones have a group for
// each domain whose ranks share memory, or one rank each. A value; equal on all ranks except for `my_group` and `me`.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/parallel/tables/row_deal.h"
#include "lockstep/parallel/tree/domains.h"

namespace lockstep::parallel {

struct RowOwners {
  bool sharded = false;
  RowPlacement placement = RowPlacement::Hash;  // within each group
  std::vector<std::vector<int>> groups;         // ranks, ascending
  int my_group = 0, me = 0;                     // this rank's group, and its number there

  static RowOwners of_shards(int rank, int size, RowPlacement placement) {
    RowOwners owners{.sharded = true, .placement = placement, .groups = std::vector<std::vector<int>>(1), .me = rank};
    for (int r = 0; r < size; ++r) owners.groups[0].push_back(r);
    return owners;
  }
  // `shares`: the ranks of a domain see one copy.
  static RowOwners of_copies(const Domains& domains, bool shares) {
    const Domains groups = shares ? domains : Domains::single_ranks(domains.rank, domains.size());
    return {.groups = groups.members, .my_group = groups.mine(), .me = groups.local_rank()};
  }
  const std::vector<int>& mine() const { return groups[static_cast<std::size_t>(my_group)]; }
  // `rows`: of a table.
  RowDeal deal(int group, std::int64_t rows) const {
    return {static_cast<int>(groups[static_cast<std::size_t>(group)].size()), placement, rows};
  }
};

}  // namespace lockstep::parallel
