#include "lockstep/parallel/tables/table_store.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kDrawWork = 20;  // a random number takes about as long as copying so many

}  // namespace

template <class T>
TableStore<T>::TableStore(NodeMemory& memory, RowOwners owners, const std::vector<NamedTable>& tables,
                          const optim::TableRules& rules, std::uint64_t seed)
    : seed_(seed), owners_(std::move(owners)) {
  for (const NamedTable& named : tables) {
    const optim::RowRuleOptions& rule = rules.of(named.name);
    tables_.push_back({.named = named, .rule = rule, .states = optim::row_states(rule), .deal = owners_.deal(owners_.my_group, named.table->rows)});
  }
  for (Stored& stored : tables_) {
    allocate(memory, stored);
    fill(stored);
  }
  memory.fence();  // each rank has written its own rows
}

template <class T>
void TableStore<T>::allocate(NodeMemory& memory, Stored& stored) {
  const std::int64_t rows = owners_.sharded ? stored.deal.rows_of(owners_.me) : stored.table().rows;
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
  const std::int64_t rows = stored.deal.rows_of(owners_.me);
  parallel_for(rows, stored.table().width * kDrawWork, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> scratch(static_cast<std::size_t>(stored.table().width));
    for (std::int64_t i = begin; i < end; ++i) write_first(stored, stored.deal.row(owners_.me, i), scratch, true);
  });
}

template <class T>
void TableStore<T>::write_first(const Stored& stored, std::int64_t number, std::span<double> scratch,
                                bool fresh) const {
  initial_row(stored.table(), stored.named.name, seed_, number, scratch);
  std::ranges::transform(scratch, row(stored, number), [](double v) { return static_cast<T>(v); });
  for (int part = 0; part < static_cast<int>(stored.states.size()); ++part) {
    const double initial = stored.states[static_cast<std::size_t>(part)].initial;
    if (!fresh || initial != 0) std::fill_n(row(stored, number, part), stored.width(part), static_cast<T>(initial));
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
