// The sum of the squares of all row gradients, over all tables and ranks: by class of rows (RowDeal), in f64, so that
// the bits do not depend on the number of ranks. One thread. T is float or double.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class RowSquares {
 public:
  // Collective; `comm` is duplicated.
  explicit RowSquares(const comm::Communicator& comm);
  // Sums the rows that this rank owns, and starts to send them; of several copies of the tables, the first counts.
  void start(const TableStore<T>& store, const std::vector<RowSet<T>>& sums);
  bool advance();  // whether sum() is complete
  double sum() const { return sum_; }

 private:
  comm::Communicator comm_;
  std::shared_ptr<std::vector<double>> classes_;  // an abandoned message may outlive this object
  comm::Request request_;
  double sum_ = 0;
};

}  // namespace lockstep::parallel
