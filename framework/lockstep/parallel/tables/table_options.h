// Options of sparse tables.
#pragma once

#include <cstdint>

#include "lockstep/optim/row_rule.h"
#include "lockstep/parallel/tables/row_deal.h"

namespace lockstep::parallel {

// The form in which the row gradients of a table travel; it changes no bit. Rows: by number and row. Blocks: all rows
// of the table, with a bit for each that has a gradient. Auto: blocks of the tables of which the first step uses most
// rows.
enum class TableExchange : std::uint8_t { Auto, Rows, Blocks };

struct TableOptions {
  optim::TableRules rules = {};
  // Each row lies on one rank of the job alone; else each node has all rows, in memory that its ranks share.
  bool shard = false;
  // The engine knows which rows changed since TableEngine::clear_changes(), at a byte for each row.
  bool changes = false;
  // Where `shard` puts rows; changes no bit.
  RowPlacement placement = RowPlacement::Hash;
  // With `shard`, every rank has replicas of this number of rows, those that are used most; changes no bit.
  std::int64_t hot_rows = 0;
  TableExchange exchange = TableExchange::Auto;
};

}  // namespace lockstep::parallel
