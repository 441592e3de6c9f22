// The gradients of one owner's rows of a table as one block. First a bit for each row says whether the row has a
// gradient; then all rows follow in their order. A row without a gradient is -0, which changes no bit of a sum. A block
// is part of a message (AllToAll), or words of its own. One thread. T is float or double.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/parallel/tables/row_deal.h"
#include "lockstep/parallel/tables/row_set.h"
#include "lockstep/parallel/tables/row_words.h"

namespace lockstep::parallel {

inline std::size_t bit_words(std::int64_t rows) { return static_cast<std::size_t>((rows + 63) / 64); }

// The number of words of a block.
template <class T>
std::size_t block_words(std::int64_t rows, std::int64_t width) {
  return bit_words(rows) + row_words<T>(static_cast<std::size_t>(rows), width);
}

template <class T>
const T* block_rows(const std::int64_t* block, std::int64_t rows) {
  return reinterpret_cast<const T*>(block + bit_words(rows));
}

// Writes a block of `rows` rows row by row.
template <class T>
class BlockWriter {
 public:
  BlockWriter(std::int64_t* block, std::int64_t rows, std::int64_t width)
      : bits_(block), to_(reinterpret_cast<T*>(block + bit_words(rows))), rows_(rows), width_(width) {
    std::fill_n(bits_, bit_words(rows), 0);
  }
  // `row` rises from call to call.
  void write(std::int64_t row, const T* from) {
    skip_to(row);
    bits_[row / 64] |= static_cast<std::int64_t>(std::uint64_t{1} << (row % 64));
    copy_row(from, to_ + row * width_, width_);
    next_ = row + 1;
  }
  void finish() { skip_to(rows_); }

 private:
  void skip_to(std::int64_t row) { std::fill(to_ + next_ * width_, to_ + row * width_, T{-0.0F}); }

  std::int64_t* bits_;
  T* to_;
  std::int64_t rows_, width_, next_ = 0;
};

// sum = a + b; all three have this many rows, and `sum` may be `a`.
template <class T>
void add_blocks(const std::int64_t* a, const std::int64_t* b, std::int64_t rows, std::int64_t width,
                std::int64_t* sum) {
  for (std::size_t i = 0; i < bit_words(rows); ++i) sum[i] = a[i] | b[i];
  const T* const left = block_rows<T>(a, rows);
  const T* const right = block_rows<T>(b, rows);
  T* const to = reinterpret_cast<T*>(sum + bit_words(rows));
  for (std::int64_t i = 0; i < rows * width; ++i) to[i] = left[i] + right[i];
}

// Writes the sum of two blocks of `owner`, of the rows that have gradients and with their numbers in the table, to
// `out`.
template <class T>
void take_sum(const std::int64_t* a, const std::int64_t* b, const RowDeal& deal, int owner, std::int64_t width,
              RowSet<T>& out) {
  const std::int64_t rows = deal.rows_of(owner);
  out.resize(static_cast<std::size_t>(rows), width);
  const T *left = block_rows<T>(a, rows), *right = block_rows<T>(b, rows);
  T* to = out.rows.data();
  std::int64_t* id = out.ids.data();
  deal.each_row(owner, [&](std::int64_t i, std::int64_t row) {
    if (((a[i / 64] | b[i / 64]) >> (i % 64) & 1) == 0) return;
    *id++ = row;
    for (std::int64_t c = 0; c < width; ++c) to[c] = left[i * width + c] + right[i * width + c];
    to += width;
  });
  out.resize(static_cast<std::size_t>(id - out.ids.data()), width);
}

}  // namespace lockstep::parallel
