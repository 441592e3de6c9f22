// A table of learned rows that is no dense parameter: a graph looks rows up by number, and its gradient is a set of
// rows, never a tensor of the table's size. A module owns the table (nn/embedding.h); a store (parallel/tables/) owns
// the values, which may lie on several ranks, and binds itself to the table. A Table's address is its identity, so a
// module that is called twice, and tied tables, have one table. Any thread may read a Table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lockstep/core/dtype.h"
#include "lockstep/graph/parameter.h"

namespace lockstep {

struct Table;

// The store of tables, as the nodes of a graph use it. One thread, the one that runs a plan. Functions throw Error
// where a rank or MPI fails.
class TableAccess {
 public:
  virtual ~TableAccess() = default;
  virtual DType dtype() const = 0;  // of values and gradients: f32 or f64
  // Writes the rows of these numbers, which are in [0, rows), one after the other to `values`. May wait for other
  // ranks.
  virtual void lookup(const Table& table, std::span<const std::int64_t> rows, void* values) = 0;
  // Takes a gradient: row i of `gradient` belongs to row rows[i] of the table; a number may appear several times. Both
  // spans may be reused after the call.
  virtual void add_gradient(const Table& table, std::span<const std::int64_t> rows, const void* gradient) = 0;
};

struct Table {
  std::int64_t rows = 0, width = 0;
  // Called for one row at a time, with the table's shape (rows, width), `width` values, and a random stream that
  // depends on seed, full name and row alone, so initial values do not depend on where rows lie.
  Initializer initialize = {};
  std::optional<std::int64_t> zero_row = {};  // starts at 0 and gets no gradient: a padding row
  bool trainable = true;                      // false: frozen; no gradient is computed
  // The store of the values, which binds itself; empty: the table cannot be read.
  std::weak_ptr<TableAccess> store = {};

  Shape shape() const { return {rows, width}; }
  // Returns the store. Throws Error if there is none.
  std::shared_ptr<TableAccess> bound() const;
};

struct NamedTable {
  std::string name;  // full path: "embedding.weight"
  Table* table;
};

// Writes the initial values of a row, from the seed of the run and the table's full name.
void initial_row(const Table& table, const std::string& name, std::uint64_t seed, std::int64_t row,
                 std::span<double> values);

}  // namespace lockstep
