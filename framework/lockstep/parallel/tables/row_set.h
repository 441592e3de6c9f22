// Gradients of rows: numbers of rows, each once and in rising order, and one row of `width` elements for each. Rows
// that are missing are zero. One thread. T is float or double.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::parallel {

template <class T>
struct RowSet {
  std::vector<std::int64_t> ids;
  std::vector<T> rows;

  bool empty() const { return ids.empty(); }
  std::int64_t count() const { return static_cast<std::int64_t>(ids.size()); }
  void clear() {
    ids.clear();
    rows.clear();
  }
};

// Sorts numbers in [0, end) by counting, digit by digit; equal numbers keep their order. The object keeps its memory.
class IdSort {
 public:
  struct Use {
    std::int64_t id, position;
  };
  // Returns the uses in the order of their ids, and of positions for equal ids. Valid until the next call.
  std::span<const Use> sort(std::span<const std::int64_t> ids, std::int64_t end);

 private:
  std::vector<Use> uses_, other_;
};

// Writes to `out` the sums of `gradient`'s rows by id, in f64 in the order of positions, rounded once. `end`: the
// number of rows of the table. Uses of the row `left_out` are left out; -1: of none.
template <class T>
void sum_uses(IdSort& sorter, std::span<const std::int64_t> ids, std::int64_t end, std::int64_t left_out,
              std::int64_t width, const T* gradient, RowSet<T>& out);

// sum = sum + more, row by row; `scratch` keeps memory for the next call.
template <class T>
void add_rows(RowSet<T>& sum, const RowSet<T>& more, std::int64_t width, RowSet<T>& scratch);

}  // namespace lockstep::parallel
