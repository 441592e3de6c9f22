// The rows of sparse tables that this rank owns and that changed since the last clear(): a byte for each row, or
// nothing where no changes are asked for. Different threads may mark different rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep::parallel {

class ChangedRows {
 public:
  ChangedRows() = default;
  // `rows`: the number of this rank's rows, by table.
  explicit ChangedRows(const std::vector<std::int64_t>& rows) {
    for (const std::int64_t count : rows) marks_.emplace_back(static_cast<std::size_t>(count), std::uint8_t{0});
  }
  bool counts() const { return !marks_.empty(); }
  // Rows have the numbers of RowDeal::local().
  void mark(std::size_t table, std::int64_t row) {
    if (counts()) marks_[table][static_cast<std::size_t>(row)] = 1;
  }
  bool has(std::size_t table, std::int64_t row) const { return marks_[table][static_cast<std::size_t>(row)] != 0; }
  std::int64_t count(std::size_t table) const { return std::ranges::count(marks_[table], std::uint8_t{1}); }
  void clear() {
    for (std::vector<std::uint8_t>& table : marks_) std::ranges::fill(table, std::uint8_t{0});
  }

 private:
  std::vector<std::vector<std::uint8_t>> marks_;
};

}  // namespace lockstep::parallel
