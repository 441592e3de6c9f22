#include "lockstep/graph/table.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep {

std::shared_ptr<TableAccess> Table::bound() const {
  std::shared_ptr<TableAccess> access = store.lock();
  check(access != nullptr, "table",
        "a sparse table of {} rows has no store, expected a Trainer or a Predictor that was made from the whole module",
        rows);
  return access;
}

void initial_row(const Table& table, const std::string& name, std::uint64_t seed, std::int64_t row,
                 std::span<double> values) {
  if (table.zero_row == row || !table.initialize) {
    std::ranges::fill(values, 0.0);
    return;
  }
  RandomStream random(mix(seed, hash_name(name)), static_cast<std::uint64_t>(row));
  table.initialize(table.shape(), values, random);
}

}  // namespace lockstep
