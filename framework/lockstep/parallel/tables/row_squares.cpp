#include "lockstep/parallel/tables/row_squares.h"

#include <algorithm>

namespace lockstep::parallel {

template <class T>
RowSquares<T>::RowSquares(const comm::Communicator& comm)
    : comm_(comm.duplicate()), classes_(std::make_shared<std::vector<double>>(RowDeal::kClasses)) {}

template <class T>
void RowSquares<T>::start(const TableStore<T>& store, const std::vector<RowSet<T>>& sums) {
  std::ranges::fill(*classes_, 0.0);
  for (std::size_t t = 0; t < sums.size() && store.owners().my_group == 0; ++t) {
    const auto width = static_cast<std::size_t>(store[t].table().width);
    const T* row = sums[t].rows.data();
    for (const std::int64_t id : sums[t].ids) {
      double square = 0;
      for (std::size_t c = 0; c < width; ++c) square += static_cast<double>(row[c]) * static_cast<double>(row[c]);
      (*classes_)[static_cast<std::size_t>(RowDeal::class_of(id))] += square;
      row += width;
    }
  }
  // Each class has one owner, and others add zeros: the order of the sum changes no bit.
  if (comm_.size() > 1) request_ = comm_.iallreduce(comm::Buffer(*classes_), comm::ReduceOp::Sum, classes_);
}

template <class T>
bool RowSquares<T>::advance() {
  if (comm_.size() > 1 && !request_.test()) return false;
  sum_ = 0;
  for (const double square : *classes_) sum_ += square;
  return true;
}

template class RowSquares<float>;
template class RowSquares<double>;

}  // namespace lockstep::parallel
