#include "lockstep/parallel/tables/table_contents.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/parallel/tables/table_memory.h"

namespace lockstep::parallel {
namespace {

Shape shape_of(const TableTensor& tensor, std::int64_t rows) {
  std::vector<std::int64_t> dims = tensor.shape.dims();
  dims[0] = rows;
  return Shape(dims);
}

// Puts the rows of all ranks, which lie one after the other, in their order.
template <class T>
void place_rows(const RowDeal& deal, Range rows, std::int64_t width, const T* from, T* to) {
  for (int r = 0; r < deal.owners(); ++r) {
    const std::int64_t end = deal.rows_below(r, rows.end);
    for (std::int64_t i = deal.rows_below(r, rows.begin); i < end; ++i, from += width)
      std::copy_n(from, width, to + (deal.row(r, i) - rows.begin) * width);
  }
}

// All tensors: for each table its values, then its states.
template <class T>
std::vector<TableTensor> list_tensors(const TableStore<T>& store) {
  std::vector<TableTensor> tensors;
  for (std::size_t t = 0; t < store.count(); ++t) {
    const auto& stored = store[t];
    tensors.push_back({.table = stored.named.name, .state = "", .shape = stored.table().shape(), .number = t});
    for (std::size_t s = 0; s < stored.states.size(); ++s) {
      const optim::RowState& state = stored.states[s];
      tensors.push_back({.table = stored.named.name,
                         .state = std::string(state.name),
                         .shape = state.one_per_row ? Shape{stored.table().rows} : stored.table().shape(),
                         .number = t,
                         .part = static_cast<int>(s)});
    }
  }
  return tensors;
}

}  // namespace

template <class T>
TableContents<T>::TableContents(const comm::Communicator& comm, const TableStore<T>& store, bool changes)
    : comm_(comm), store_(store), tensors_(list_tensors(store)) {
  if (!changes) return;
  std::vector<std::int64_t> rows;
  for (std::size_t t = 0; t < store.count(); ++t) rows.push_back(store[t].deal.rows_of(store.owners().me));
  const auto bytes = static_cast<std::size_t>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
  allocate_together(comm, TableMemory::Changes, "a mark for each row that changes (--full-tables-every)", bytes,
                    [&] { changed_ = ChangedRows(rows); });
}

template <class T>
Tensor TableContents<T>::read(const TableTensor& tensor, Range rows, bool wanted) const {
  const auto& stored = store_[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  if (!store_.owners().sharded) {
    if (!wanted) return {};
    const T* const from = store_.row(stored, rows.begin, tensor.part);
    return Tensor::from<T>(shape_of(tensor, rows.size()),
                           std::span(from, static_cast<std::size_t>(rows.size() * width)));
  }
  const RowDeal& deal = stored.deal;
  std::vector<std::int64_t> counts;  // elements, by rank
  for (int r = 0; r < comm_.size(); ++r)
    counts.push_back((deal.rows_below(r, rows.end) - deal.rows_below(r, rows.begin)) * width);
  const T* const mine = stored.data(tensor.part) + deal.rows_below(comm_.rank(), rows.begin) * width;
  const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm_.rank())]);
  std::vector<T> all(comm_.is_root() ? static_cast<std::size_t>(rows.size() * width) : 0);
  comm_.gatherv(comm::ConstBuffer(std::span(mine, count)), comm::Buffer(all), counts);
  if (!comm_.is_root() || !wanted) return {};
  Tensor result(shape_of(tensor, rows.size()), dtype_of<T>);
  place_rows(deal, rows, width, all.data(), result.data<T>().data());
  return result;
}

template <class T>
void TableContents<T>::write(const TableTensor& tensor, Range rows, const Tensor& values) {
  const auto& stored = store_[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  check(values.elements() == rows.size() * width, "tables", "'{}' got {} elements for {} rows, expected {}",
        tensor.table, values.elements(), rows.size(), rows.size() * width);
  const Tensor typed = values.to(dtype_of<T>);
  const RowDeal& deal = stored.deal;
  const int me = store_.owners().me;
  for (std::int64_t i = deal.rows_below(me, rows.begin); i < deal.rows_below(me, rows.end); ++i) {
    const std::int64_t row = deal.row(me, i);
    std::copy_n(typed.data<T>().data() + (row - rows.begin) * width, width, store_.row(stored, row, tensor.part));
    if (changed_.counts()) changed_.mark(tensor.number, i);
  }
}

template <class T>
void TableContents<T>::reset(const Table& table, std::span<const std::int64_t> rows) {
  const std::size_t t = store_.find(table);
  for (const std::int64_t row : rows)
    check(row >= 0 && row < table.rows, "tables", "row {} to reset, expected 0 to {}", row, table.rows - 1);
  std::vector<double> scratch(static_cast<std::size_t>(table.width));
  for (const std::int64_t row : rows) {
    if (store_.owns(store_[t], row)) store_.reset(store_[t], row, scratch);
    mark_change(t, row);
  }
  comm_.barrier();  // other ranks of the node read these rows
}

template <class T>
std::vector<std::int64_t> TableContents<T>::count_changes() const {
  std::vector<std::int64_t> counts(store_.count());
  for (std::size_t t = 0; store_.owners().mine().front() == 0 && t < counts.size(); ++t) counts[t] = changed_.count(t);
  comm_.allreduce(comm::Buffer(counts), comm::ReduceOp::Sum);
  return counts;
}

template <class T>
auto TableContents<T>::my_changes(const TableTensor& tensor, Range rows) const -> Part {
  Part part;
  const RowOwners& owners = store_.owners();
  if (owners.mine().front() != 0) return part;  // this rank and rank 0 see different copies of the tables
  const auto& stored = store_[tensor.number];
  const std::int64_t end = stored.deal.rows_below(owners.me, rows.end);
  for (std::int64_t i = stored.deal.rows_below(owners.me, rows.begin); i < end; ++i) {
    if (!changed_.has(tensor.number, i)) continue;
    const std::int64_t row = stored.deal.row(owners.me, i);
    part.numbers.push_back(static_cast<std::int32_t>(row - rows.begin));
    const T* const from = store_.row(stored, row, tensor.part);
    part.values.insert(part.values.end(), from, from + stored.width(tensor.part));
  }
  return part;
}

template <class T>
RowChanges TableContents<T>::read_changes(const TableTensor& tensor, Range rows) const {
  const std::int64_t width = store_[tensor.number].width(tensor.part);
  const Part mine = my_changes(tensor, rows);
  std::vector<std::int64_t> counts = comm_.allgather(std::ssize(mine.numbers));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<std::int32_t> numbers(comm_.is_root() ? static_cast<std::size_t>(total) : 0);
  comm_.gatherv(comm::ConstBuffer(mine.numbers), comm::Buffer(numbers), counts);
  for (std::int64_t& count : counts) count *= width;
  std::vector<T> all(comm_.is_root() ? static_cast<std::size_t>(total * width) : 0);
  comm_.gatherv(comm::ConstBuffer(mine.values), comm::Buffer(all), counts);
  if (!comm_.is_root()) return {};
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  RowChanges result{Tensor(Shape{total}, DType::I32), Tensor(shape_of(tensor, total), dtype_of<T>)};
  if (total == 0) return result;
  T* to = result.values.template data<T>().data();
  std::ranges::transform(order, result.numbers.data<std::int32_t>().data(), [&](std::size_t i) { return numbers[i]; });
  for (const std::size_t i : order) to = std::copy_n(all.data() + i * static_cast<std::size_t>(width), width, to);
  return result;
}

template class TableContents<float>;
template class TableContents<double>;

}  // namespace lockstep::parallel
