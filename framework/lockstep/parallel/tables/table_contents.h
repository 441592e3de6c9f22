// The contents of sparse tables between steps, as tensors in parts of whole rows: values, and states of their rules;
// and the rows that changed. The functions are those of TableEngine, which settles rows before it calls them.
// Construction is collective. One thread. T is float or double.
#pragma once

#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/partition.h"
#include "lockstep/core/tensor.h"
#include "lockstep/parallel/tables/changed_rows.h"
#include "lockstep/parallel/tables/table_engine.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

template <class T>
class TableContents {
 public:
  // `comm` and `store` outlive this. With `changes`, it knows the rows that changed.
  TableContents(const comm::Communicator& comm, const TableStore<T>& store, bool changes);

  // For each table its values, then its states.
  const std::vector<TableTensor>& tensors() const { return tensors_; }
  Tensor read(const TableTensor& tensor, Range rows, bool wanted) const;
  void write(const TableTensor& tensor, Range rows, const Tensor& values);
  void reset(const Table& table, std::span<const std::int64_t> rows);

  void clear_changes() { changed_.clear(); }
  void mark_change(std::size_t table, std::int64_t row) {
    const auto& stored = store_[table];
    if (changed_.counts() && store_.owns(stored, row)) changed_.mark(table, stored.deal.local(row));
  }
  std::vector<std::int64_t> count_changes() const;
  RowChanges read_changes(const TableTensor& tensor, Range rows) const;

 private:
  // The changed rows of a range that this rank contributes, counted from its first row.
  struct Part {
    std::vector<std::int32_t> numbers;
    std::vector<T> values;
  };
  Part my_changes(const TableTensor& tensor, Range rows) const;

  const comm::Communicator& comm_;
  const TableStore<T>& store_;
  std::vector<TableTensor> tensors_;
  ChangedRows changed_;
};

}  // namespace lockstep::parallel
