// The choice of the tables whose row gradients travel as blocks (row_block.h): with TableExchange::Auto those of which
// most rows have gradients in the first step, counted over all ranks, so that all ranks choose alike. Rank 0 logs each.
// One thread; all ranks make the same calls. T is float or double.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/table_options.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class BlockChoice {
 public:
  // `store` outlives this; `waiting` is called again and again while this waits. Collective; `comm` is duplicated.
  BlockChoice(const comm::Communicator& comm, const TableStore<T>& store, TableExchange form,
              const std::function<void()>& waiting);

  // Counts the rows of this rank's open partial sums, by table, in the first step.
  void count(const std::vector<std::vector<RowSet<T>>>& mine);
  // Called at the beginning of each step, with the number of open partial sums of all ranks. Returns the tables whose
  // rows travel as blocks from this step on.
  std::vector<std::size_t> choose(std::size_t partials);

 private:
  void say(std::size_t table, double part) const;

  comm::Communicator comm_;
  const TableStore<T>& store_;
  TableExchange form_;
  const std::function<void()>& waiting_;
  std::shared_ptr<std::vector<std::int64_t>> counts_;  // an abandoned message may outlive this object
  comm::Request request_;
  int step_ = 0;
};

}  // namespace lockstep::parallel
