// Rows that are cut into pieces: row r of the whole is the row r of piece 0, then that of piece 1, and so on. Joins
// pieces and cuts a whole, on several threads also for a single long row. Moves bytes. Nothing allocates in a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::kernels::generic {

class Pieces {
 public:
  // `widths`: the bytes of a row of each piece.
  Pieces(std::int64_t rows, std::vector<std::int64_t> widths);
  void join(const void* const* pieces, void* whole) const;
  void cut(const void* whole, void* const* pieces) const;

 private:
  template <class Move>
  void for_parts(const Move& move) const;

  std::int64_t rows_, width_ = 0;  // of the whole
  std::vector<std::int64_t> widths_, starts_;
};

}  // namespace lockstep::kernels::generic
