// The row gradients of this rank's shards in a step: uses of rows in one pass, sums of passes in a shard, and sums of
// shards in the order of the reduction tree, as far as they are complete on this rank. One thread. T is float or
// double.
#pragma once

#include <vector>

#include "lockstep/graph/table.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::parallel {

template <class T>
class RowCollector {
 public:
  // `sizes`: by table.
  RowCollector(const WorldLayout& world, std::vector<TableSize> sizes);

  void begin_step();
  void begin_shard();
  // The next run of a plan has this number of gradient nodes; `last`: it is the last run of the shard, which ends with
  // its last gradient.
  void begin_pass(int gradients, bool last);
  // Takes one node's gradient for the table `number`; nothing outside of a step.
  void add(std::size_t number, const Table& table, std::span<const std::int64_t> rows, const T* gradient);
  void end_shard();  // nothing if the shard has ended
  // Whether all shards have ended. sums() are then this rank's open partial sums, by slot and table; the caller may
  // exchange their content.
  bool is_complete() const { return walk_.done(); }
  std::vector<std::vector<RowSet<T>>>& sums() { return slots_; }

 private:
  // The run of a plan: sums by table, its gradient nodes, and how many of them have come.
  struct Pass {
    std::vector<RowSet<T>> sums;
    int gradients = 0, come = 0;
    bool last = false;
  };
  std::vector<RowSet<T>>& slot() { return slots_[static_cast<std::size_t>(walk_.slot())]; }
  void end_pass();

  std::vector<TableSize> sizes_;
  ShardWalk walk_;
  std::vector<std::vector<RowSet<T>>> slots_;
  Pass pass_;
  IdSort sorter_;
  RowSet<T> use_, scratch_;
  bool shard_open_ = false;
};

}  // namespace lockstep::parallel
