#include "lockstep/parallel/tables/table_store.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/parallel/tables/table_memory.h"

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kDrawWork = 20;  // a random number takes about as long as copying so many

}  // namespace

template <class T>
TableStore<T>::TableStore(const comm::Communicator& comm, NodeMemory& memory, RowOwners owners,
                          const std::vector<NamedTable>& tables, const optim::TableRules& rules, std::uint64_t seed)
    : seed_(seed), owners_(std::move(owners)) {
  for (const NamedTable& named : tables) {
    const optim::RowRuleOptions& rule = rules.of(named.name);
    tables_.push_back({.named = named,
                       .rule = rule,
                       .states = optim::row_states(rule),
                       .deal = owners_.deal(owners_.my_group, named.table->rows)});
  }
  allocate(comm, memory);
  for (const Stored& stored : tables_) fill(stored);
  memory.fence();  // each rank has written its own rows
}

template <class T>
std::size_t TableStore<T>::part_bytes(const Stored& stored, int part) const {
  const std::int64_t rows = owners_.sharded ? stored.deal.rows_of(owners_.me) : stored.table().rows;
  return static_cast<std::size_t>(rows * stored.width(part)) * sizeof(T);
}

template <class T>
void TableStore<T>::allocate(const comm::Communicator& comm, NodeMemory& memory) {
  const auto each_part = [&](const auto& visit) {
    for (Stored& stored : tables_) {
      for (int part = -1; part < static_cast<int>(stored.states.size()); ++part)
        visit(stored, part_bytes(stored, part));
    }
  };
  std::size_t own = 0;
  each_part([&](const Stored&, std::size_t bytes) {
    bytes_ += bytes;
    own += whole_lines(bytes);
  });
  const bool shares = !owners_.sharded && memory.shares();
  const std::string use =
      formatted("the rows of {} sparse table{} with their states", tables_.size(), tables_.size() == 1 ? "" : "s");
  allocate_together(comm, TableMemory::Rows, use, own, [&] {
    if (!shares) own_ = ZeroPages(own);
    std::byte* next = own_.data();
    each_part([&](Stored& stored, std::size_t bytes) {
      stored.memory.push_back(reinterpret_cast<T*>(shares ? memory.common(bytes).data() : next));
      if (!shares) next += whole_lines(bytes);
    });
  });
}

template <class T>
void TableStore<T>::fill(const Stored& stored) const {
  const std::int64_t rows = stored.deal.rows_of(owners_.me);
  parallel_for(rows, stored.table().width * kDrawWork, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> scratch(static_cast<std::size_t>(stored.table().width));
    for (std::int64_t i = begin; i < end; ++i)
      write_first(stored, stored.deal.row(owners_.me, i), scratch, own_.data() != nullptr);
  });
}

template <class T>
void TableStore<T>::write_first(const Stored& stored, std::int64_t number, std::span<double> scratch,
                                bool is_zero) const {
  initial_row(stored.table(), stored.named.name, seed_, number, scratch);
  std::ranges::transform(scratch, row(stored, number), [](double v) { return static_cast<T>(v); });
  for (int part = 0; part < static_cast<int>(stored.states.size()); ++part) {
    const double initial = stored.states[static_cast<std::size_t>(part)].initial;
    if (!is_zero || initial != 0) std::fill_n(row(stored, number, part), stored.width(part), static_cast<T>(initial));
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
