#include "lockstep/parallel/tables/table_store.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::parallel {

template <class T>
TableStore<T>::TableStore(NodeMemory& memory, RowOwners owners, const std::vector<NamedTable>& tables,
                          const optim::TableRules& rules, std::uint64_t seed)
    : seed_(seed), owners_(std::move(owners)), deal_(owners_.deal()) {
  for (const NamedTable& named : tables) {
    const optim::RowRuleOptions& rule = rules.of(named.name);
    tables_.push_back({.named = named, .rule = rule, .states = optim::row_states(rule)});
  }
  for (Stored& stored : tables_) {
    allocate(memory, stored);
    fill(stored);
  }
  memory.fence();  // each rank has written its own rows
}

template <class T>
void TableStore<T>::allocate(NodeMemory& memory, Stored& stored) {
  const std::int64_t rows = owners_.sharded ? deal_.rows_below(owners_.me, stored.table().rows) : stored.table().rows;
  for (int part = -1; part < static_cast<int>(stored.states.size()); ++part) {
    const std::size_t bytes = static_cast<std::size_t>(rows * stored.width(part)) * sizeof(T);
    bytes_ += bytes;
    if (owners_.sharded) stored.own.push_back(allocate_aligned(bytes));
    stored.memory.push_back(
        reinterpret_cast<T*>(owners_.sharded ? stored.own.back().get() : memory.common(bytes).data()));
  }
}

template <class T>
void TableStore<T>::fill(const Stored& stored) const {
  std::vector<double> scratch(static_cast<std::size_t>(stored.table().width));
  const std::int64_t rows = deal_.rows_below(owners_.me, stored.table().rows);
  for (std::int64_t i = 0; i < rows; ++i) reset(stored, deal_.row(owners_.me, i), scratch);
}

template <class T>
void TableStore<T>::reset(const Stored& stored, std::int64_t number, std::span<double> scratch) const {
  initial_row(stored.table(), stored.named.name, seed_, number, scratch);
  std::ranges::transform(scratch, row(stored, number), [](double v) { return static_cast<T>(v); });
  for (int part = 0; part < static_cast<int>(stored.states.size()); ++part) {
    const double initial = stored.states[static_cast<std::size_t>(part)].initial;
    std::fill_n(row(stored, number, part), stored.width(part), static_cast<T>(initial));
  }
}

template <class T>
std::size_t TableStore<T>::find(const Table& table) const {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].named.table == &table) return t;
  }
  fail("tables", "a lookup in a table of {} rows that is not in the model, expected one of its {} tables", table.rows,
       tables_.size());
}

template class TableStore<float>;
template class TableStore<double>;

}  // namespace lockstep::parallel
