#include "lockstep/parallel/tables/table_tensors.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/error.h"

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

}  // namespace

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

template <class T>
Tensor read_rows(const comm::Communicator& comm, const TableStore<T>& store, const TableTensor& tensor, Range rows,
                 bool wanted) {
  const auto& stored = store[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  if (!store.owners().sharded) {
    if (!wanted) return {};
    const T* const from = store.row(stored, rows.begin, tensor.part);
    return Tensor::from<T>(shape_of(tensor, rows.size()),
                           std::span(from, static_cast<std::size_t>(rows.size() * width)));
  }
  const RowDeal& deal = stored.deal;
  std::vector<std::int64_t> counts;  // elements, by rank
  for (int r = 0; r < comm.size(); ++r)
    counts.push_back((deal.rows_below(r, rows.end) - deal.rows_below(r, rows.begin)) * width);
  const T* const mine = stored.data(tensor.part) + deal.rows_below(comm.rank(), rows.begin) * width;
  const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]);
  std::vector<T> all(comm.is_root() ? static_cast<std::size_t>(rows.size() * width) : 0);
  comm.gatherv(comm::ConstBuffer(std::span(mine, count)), comm::Buffer(all), counts);
  if (!comm.is_root() || !wanted) return {};
  Tensor result(shape_of(tensor, rows.size()), dtype_of<T>);
  place_rows(deal, rows, width, all.data(), result.data<T>().data());
  return result;
}

template <class T>
RowChanges read_changed_rows(const comm::Communicator& comm, const TableStore<T>& store, const ChangedRows& changed,
                             const TableTensor& tensor, Range rows) {
  const auto& stored = store[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  const RowOwners& owners = store.owners();
  std::vector<std::int32_t> mine;  // counted from the first row of the range
  std::vector<T> values;
  const bool of_root = owners.mine().front() == 0;  // this rank and rank 0 see one copy of the tables
  const std::int64_t end = of_root ? stored.deal.rows_below(owners.me, rows.end) : 0;
  for (std::int64_t i = of_root ? stored.deal.rows_below(owners.me, rows.begin) : 0; i < end; ++i) {
    if (!changed.has(tensor.number, i)) continue;
    const std::int64_t row = stored.deal.row(owners.me, i);
    mine.push_back(static_cast<std::int32_t>(row - rows.begin));
    const T* const from = store.row(stored, row, tensor.part);
    values.insert(values.end(), from, from + width);
  }
  std::vector<std::int64_t> counts = comm.allgather(std::ssize(mine));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<std::int32_t> numbers(comm.is_root() ? static_cast<std::size_t>(total) : 0);
  comm.gatherv(comm::ConstBuffer(mine), comm::Buffer(numbers), counts);
  for (std::int64_t& count : counts) count *= width;
  std::vector<T> all(comm.is_root() ? static_cast<std::size_t>(total * width) : 0);
  comm.gatherv(comm::ConstBuffer(values), comm::Buffer(all), counts);
  if (!comm.is_root()) return {};
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

template <class T>
void write_rows(const TableStore<T>& store, const TableTensor& tensor, Range rows, const Tensor& values) {
  const auto& stored = store[tensor.number];
  const std::int64_t width = stored.width(tensor.part);
  check(values.elements() == rows.size() * width, "tables", "'{}' got {} elements for {} rows, expected {}",
        tensor.table, values.elements(), rows.size(), rows.size() * width);
  const Tensor typed = values.to(dtype_of<T>);
  const RowDeal& deal = stored.deal;
  const int me = store.owners().me;
  for (std::int64_t i = deal.rows_below(me, rows.begin); i < deal.rows_below(me, rows.end); ++i) {
    const std::int64_t row = deal.row(me, i);
    std::copy_n(typed.data<T>().data() + (row - rows.begin) * width, width, store.row(stored, row, tensor.part));
  }
}

template std::vector<TableTensor> list_tensors(const TableStore<float>&);
template std::vector<TableTensor> list_tensors(const TableStore<double>&);
template Tensor read_rows(const comm::Communicator&, const TableStore<float>&, const TableTensor&, Range, bool);
template Tensor read_rows(const comm::Communicator&, const TableStore<double>&, const TableTensor&, Range, bool);
template RowChanges read_changed_rows(const comm::Communicator&, const TableStore<float>&, const ChangedRows&,
                                      const TableTensor&, Range);
template RowChanges read_changed_rows(const comm::Communicator&, const TableStore<double>&, const ChangedRows&,
                                      const TableTensor&, Range);
template void write_rows(const TableStore<float>&, const TableTensor&, Range, const Tensor&);
template void write_rows(const TableStore<double>&, const TableTensor&, Range, const Tensor&);

}  // namespace lockstep::parallel
