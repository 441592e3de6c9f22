#include "lockstep/parallel/tables/row_collector.h"

#include <utility>

namespace lockstep::parallel {

template <class T>
RowCollector<T>::RowCollector(const WorldLayout& world, std::vector<TableSize> sizes)
    : sizes_(std::move(sizes)), walk_(world), slots_(static_cast<std::size_t>(world.my_slots())) {
  for (auto& tables : slots_) tables.resize(sizes_.size());
  pass_.sums.resize(sizes_.size());
}

template <class T>
void RowCollector<T>::begin_step() {
  walk_.begin();
  shard_open_ = false;
}

template <class T>
void RowCollector<T>::begin_shard() {
  for (RowSet<T>& rows : slot()) rows.clear();
  for (RowSet<T>& rows : pass_.sums) rows.clear();
  shard_open_ = true;
}

template <class T>
void RowCollector<T>::begin_pass(int gradients, bool last) {
  pass_.gradients = gradients;
  pass_.come = 0;
  pass_.last = last;
}

// A table that is used several times gets the sum of its uses, each rounded, in the order of the graph; the sums of the
// micro-batches are added after that. So it is with a dense parameter.
template <class T>
void RowCollector<T>::add(std::size_t number, const Table& table, std::span<const std::int64_t> rows,
                          const T* gradient) {
  if (!shard_open_) return;  // a run that looks for a value that is not finite
  RowSet<T>& sum = pass_.sums[number];
  RowSet<T>& into = sum.empty() ? sum : use_;
  sum_uses(sorter_, rows, table.rows, table.zero_row.value_or(-1), table.width, gradient, into);
  if (&into == &use_) add_rows(sum, use_, table.width, scratch_);
  if (++pass_.come == pass_.gradients) end_pass();
}

template <class T>
void RowCollector<T>::end_pass() {
  for (std::size_t t = 0; t < sizes_.size(); ++t) {
    RowSet<T>& sum = slot()[t];
    sum.empty() ? std::swap(sum, pass_.sums[t]) : add_rows(sum, pass_.sums[t], sizes_[t].width, scratch_);
    pass_.sums[t].clear();
  }
  if (pass_.last) end_shard();
}

template <class T>
void RowCollector<T>::end_shard() {
  if (!std::exchange(shard_open_, false)) return;
  walk_.join([&](int from, int into) {
    for (std::size_t t = 0; t < sizes_.size(); ++t)
      add_rows(slots_[static_cast<std::size_t>(into)][t], slots_[static_cast<std::size_t>(from)][t], sizes_[t].width,
               scratch_);
  });
  walk_.next();
}

template class RowCollector<float>;
template class RowCollector<double>;

}  // namespace lockstep::parallel
