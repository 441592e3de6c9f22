// The reduction tree cut at the borders of domains: what each domain adds up within itself, what then stays open, and
// how that is added to the root. A value, computed once.
#pragma once

#include <vector>

#include "lockstep/parallel/tree/domains.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

struct DomainTree {
  // One sum that a domain can complete by itself: of operands by position in the domain's list, which has the slots of
  // its ranks' open partials one after the other. The result lies where the first operand does.
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
  std::vector<Sum> sums;           // of my domain: one per open sum
  std::vector<int> open_sums;      // by domain: how many
  std::vector<Open> order;         // all domains' open sums in shard order
  std::vector<TreeMerge> to_root;  // over `order`
};

}  // namespace lockstep::parallel
