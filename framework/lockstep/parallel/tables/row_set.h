// Gradients of rows: numbers of rows, each once and in rising order, and one row of `width` elements for each. Rows
// that are missing are zero. One thread. T is float or double.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/parallel/tables/raw_vector.h"

namespace lockstep::parallel {

struct TableSize {
  std::int64_t rows = 0, width = 0;
};

// Rows that another object has.
template <class T>
struct RowView {
  std::span<const std::int64_t> ids = {};
  const T* rows = nullptr;

  bool empty() const { return ids.empty(); }
  std::int64_t count() const { return static_cast<std::int64_t>(ids.size()); }
};

template <class T>
struct RowSet {
  RawVector<std::int64_t> ids;
  RawVector<T> rows;

  bool empty() const { return ids.empty(); }
  void clear() {
    ids.clear();
    rows.clear();
  }
  void resize(std::size_t count, std::int64_t width) {
    ids.resize(count);
    rows.resize(count * static_cast<std::size_t>(width));
  }
  RowView<T> view() const { return {ids, rows.data()}; }
};

// Copies a row. Rows are short, so a call of memcpy would take as long as the copy.
template <class T>
inline void copy_row(const T* from, T* to, std::int64_t width) {
  constexpr std::int64_t kBlock = 16 / sizeof(T);
  std::int64_t i = 0;
  for (; i + 2 * kBlock <= width; i += 2 * kBlock) std::memcpy(to + i, from + i, 2 * kBlock * sizeof(T));
  for (; i < width; ++i) to[i] = from[i];
}

// Sorts numbers in [0, end) by counting, digit by digit. The object keeps its memory.
class IdSort {
 public:
  // Distinct numbers in rising order; the uses of ids[i] are at positions[starts[i]] to positions[starts[i + 1] - 1],
  // in rising order.
  struct Groups {
    std::span<const std::int64_t> ids;
    std::span<const std::uint32_t> starts, positions;
    std::size_t count() const { return ids.size(); }
    std::span<const std::uint32_t> uses(std::size_t i) const {
      return positions.subspan(starts[i], starts[i + 1] - starts[i]);
    }
  };
  // Valid until the next call. Throws Error for 2^32 numbers or more.
  Groups sort(std::span<const std::int64_t> ids, std::int64_t end);

 private:
  void sort_by_digit(std::span<const std::int64_t> ids, int shift, int bits, bool first);

  RawVector<std::int64_t> ids_;
  RawVector<std::uint32_t> starts_, positions_, other_;
  std::vector<std::uint32_t> places_;
};

// Writes to `out` the sums of `gradient`'s rows by id, in f64 in the order of positions, rounded once. `end`: the
// number of rows of the table. Uses of the row `left_out` are left out; -1: of none.
template <class T>
void sum_uses(IdSort& sorter, std::span<const std::int64_t> ids, std::int64_t end, std::int64_t left_out,
              std::int64_t width, const T* gradient, RowSet<T>& out);

// out = a + b, row by row; `out` is neither of them.
template <class T>
void merge_rows(const RowView<T>& a, const RowView<T>& b, std::int64_t width, RowSet<T>& out);

// sum = sum + more, row by row; `scratch` keeps memory for the next call.
template <class T>
void add_rows(RowSet<T>& sum, const RowSet<T>& more, std::int64_t width, RowSet<T>& scratch);

}  // namespace lockstep::parallel
