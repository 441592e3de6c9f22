// The sum of the squares of all row gradients, over all tables and ranks: those of a row in f64, and the exact sum of
// these, so that the bits depend neither on the number of ranks nor on where rows lie. One thread. T is float or
// double.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tables/exact_sum.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class RowSquares {
 public:
  // Collective; `comm` is duplicated.
  explicit RowSquares(const comm::Communicator& comm);
  // Sums the rows that this rank owns, and starts to send them; of several copies of the tables, the first counts.
  void start(const TableStore<T>& store, const std::vector<RowView<T>>& sums);
  bool advance();  // whether sum() is complete
  double sum() const { return sum_; }

 private:
  comm::Communicator comm_;
  std::shared_ptr<ExactSum> exact_;  // an abandoned message may outlive this object
  comm::Request request_;
  double sum_ = 0;
};

}  // namespace lockstep::parallel
