// Options of sparse tables.
#pragma once

#include "lockstep/optim/row_rule.h"

namespace lockstep::parallel {

struct TableOptions {
  optim::TableRules rules = {};
  // Each row lies on one rank of the job alone; else each node has all rows, in memory that its ranks share.
  bool shard = false;
  // The engine knows which rows changed since TableEngine::clear_changes(), at a byte for each row.
  bool changes = false;
};

}  // namespace lockstep::parallel
