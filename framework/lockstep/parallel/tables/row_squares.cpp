#include "lockstep/parallel/tables/row_squares.h"

namespace lockstep::parallel {

template <class T>
RowSquares<T>::RowSquares(const comm::Communicator& comm)
    : comm_(comm.duplicate()), exact_(std::make_shared<ExactSum>()) {}

template <class T>
void RowSquares<T>::start(const TableStore<T>& store, const std::vector<RowView<T>>& sums) {
  *exact_ = {};
  for (std::size_t t = 0; t < sums.size() && store.owners().my_group == 0; ++t) {
    const std::int64_t width = store[t].table().width;
    const T* row = sums[t].rows;
    for (std::int64_t i = 0; i < sums[t].count(); ++i, row += width) {
      double square = 0;
      for (std::int64_t c = 0; c < width; ++c) square += static_cast<double>(row[c]) * static_cast<double>(row[c]);
      exact_->add(square);
    }
  }
  if (comm_.size() > 1) request_ = comm_.iallreduce(comm::Buffer(exact_->words()), comm::ReduceOp::Sum, exact_);
}

template <class T>
bool RowSquares<T>::advance() {
  if (comm_.size() > 1 && !request_.test()) return false;
  sum_ = exact_->value();
  return true;
}

template class RowSquares<float>;
template class RowSquares<double>;

}  // namespace lockstep::parallel
