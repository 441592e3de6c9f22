// Options of sparse tables.
#pragma once

#include "lockstep/optim/row_rule.h"

namespace lockstep::parallel {

struct TableOptions {
  optim::TableRules rules = {};
  // Each row lies on one rank of the job alone; else each node has all rows, in memory that its ranks share.
  bool shard = false;
};

}  // namespace lockstep::parallel
