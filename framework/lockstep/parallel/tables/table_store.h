// The values of sparse tables and the state of their update rules, on this rank or in the memory of its node: all rows
// where tables are replicated, this rank's rows where they are sharded. T is float or double. Construction is
// collective; if one rank cannot have its memory, all ranks throw the same Error (table_memory.h). One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/tensor.h"
#include "lockstep/graph/table.h"
#include "lockstep/optim/row_rule.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/tables/row_owners.h"
#include "lockstep/parallel/tables/zero_pages.h"

namespace lockstep::parallel {

template <class T>
class TableStore {
 public:
  struct Stored {
    NamedTable named;
    optim::RowRuleOptions rule;
    std::vector<optim::RowState> states;
    RowDeal deal;                 // over the ranks of this rank's group
    std::vector<T*> memory = {};  // of the values, then of each state

    const Table& table() const { return *named.table; }
    // Elements of one row; part -1 is the values, others are states.
    std::int64_t width(int part) const {
      return part >= 0 && states[static_cast<std::size_t>(part)].one_per_row ? 1 : table().width;
    }
    T* data(int part) const { return memory[static_cast<std::size_t>(std::int64_t{part} + 1)]; }
  };
  // Allocates and writes initial values and states. `memory` outlives this.
  TableStore(const comm::Communicator& comm, NodeMemory& memory, RowOwners owners,
             const std::vector<NamedTable>& tables, const optim::TableRules& rules, std::uint64_t seed);

  const RowOwners& owners() const { return owners_; }
  std::size_t count() const { return tables_.size(); }
  const Stored& operator[](std::size_t t) const { return tables_[t]; }
  std::size_t find(const Table& table) const;  // throws Error for a table of another model
  // Writes the first values and states of a row that this rank owns; `scratch` has as many elements as a row.
  void reset(const Stored& stored, std::int64_t row, std::span<double> scratch) const {
    write_first(stored, row, scratch, false);
  }
  // The elements of a row of the table, which must lie on this rank; part: see Stored::width().
  T* row(const Stored& stored, std::int64_t row, int part = -1) const {
    return stored.data(part) + (owners_.sharded ? stored.deal.local(row) : row) * stored.width(part);
  }
  bool owns(const Stored& stored, std::int64_t row) const { return stored.deal.owner(row) == owners_.me; }
  std::size_t bytes() const { return bytes_; }  // that this rank allocated or sees: values and states

 private:
  std::size_t part_bytes(const Stored& stored, int part) const;
  void allocate(const comm::Communicator& comm, NodeMemory& memory);
  void fill(const Stored& stored) const;
  // `is_zero`: the memory is 0, and states that begin at 0 are not touched: their pages take no memory yet.
  void write_first(const Stored& stored, std::int64_t row, std::span<double> scratch, bool is_zero) const;

  std::uint64_t seed_;
  RowOwners owners_;
  std::vector<Stored> tables_;
  ZeroPages own_;  // unless ranks of the node share the tables
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::parallel
