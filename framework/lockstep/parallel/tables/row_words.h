// Rows in messages of words (AllToAll): rows begin at a whole word and fill whole words. T is float or double.
#pragma once

#include <cstdint>

#include "lockstep/parallel/tables/all_to_all.h"
#include "lockstep/parallel/tables/row_set.h"

namespace lockstep::parallel {

// The number of words that rows take.
template <class T>
std::size_t row_words(std::size_t rows, std::int64_t width) {
  constexpr std::size_t kWord = sizeof(std::int64_t);
  return (rows * static_cast<std::size_t>(width) * sizeof(T) + kWord - 1) / kWord;
}

// Adds words without values to a message, and returns the first of them.
inline std::int64_t* extend(AllToAll::Words& words, std::size_t more) {
  const std::size_t size = words.size();
  words.resize(size + more);
  return words.data() + size;
}

// Returns the rows that a message has at `words`, and moves this behind them: their number, their numbers in the table,
// and the rows from a whole word on.
template <class T>
RowView<T> take_rows(const std::int64_t*& words, std::int64_t width) {
  const auto rows = static_cast<std::size_t>(*words++);
  const RowView<T> view{{words, rows}, reinterpret_cast<const T*>(words + rows)};
  words += rows + row_words<T>(rows, width);
  return view;
}

}  // namespace lockstep::parallel
