// The reduction tree cut at the borders of domains: the sums that each domain completes by itself (its open sums), and
// the additions that join the open sums of all domains to the root. A value, computed once.
#pragma once

#include <vector>

#include "lockstep/parallel/tree/domains.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

struct DomainTree {
  // One sum that a domain completes by itself. Operands are positions in the domain's list of operands: the slots of
  // the open partial sums of its ranks, rank after rank. The result replaces the first operand.
  struct Sum {
    std::vector<int> operands;
    std::vector<TreeMerge> merges;  // over positions in `operands`
  };
  struct Operand {
    int local_rank, slot;
  };
  struct Open {  // a domain's open sum
    int domain, index;
  };

  DomainTree(const WorldLayout& world, const Domains& domains);

  std::vector<Operand> operands;   // of my domain
  std::vector<Sum> sums;           // of my domain: how each open sum is made
  std::vector<int> open_sums;      // by domain: the number of its open sums
  std::vector<Open> order;         // all domains' open sums in shard order
  std::vector<TreeMerge> to_root;  // over `order`
};

}  // namespace lockstep::parallel
