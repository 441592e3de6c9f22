// The distribution of a table's rows over owners, each of which updates its rows. By hash, rows belong to classes, by
// their number modulo kClasses, and classes are dealt to the owners in turn: numbers that are used often, which lie
// side by side where a vocabulary is sorted, are spread over the owners. By range, each owner has one part of the
// table. A value; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace lockstep::parallel {

enum class RowPlacement : std::uint8_t { Hash, Range };

class RowDeal {
 public:
  static constexpr std::int64_t kClasses = 1024;  // the largest number of owners

  // `rows`: of the table, at least 1.
  RowDeal(int owners, RowPlacement placement, std::int64_t rows)
      : owners_(owners), rows_(rows), part_((rows + owners - 1) / owners) {
    if (placement == RowPlacement::Hash) classes_ = std::make_shared<const Classes>(owners);
  }
  int owners() const { return owners_; }
  int owner(std::int64_t row) const {
    return classes_ ? classes_->owner[class_of(row)] : static_cast<int>(row / part_);
  }
  // The owner's rows are numbered from 0 in the order of their numbers in the table.
  std::int64_t local(std::int64_t row) const {
    if (!classes_) return row % part_;
    return row / kClasses * classes_of(owner(row)) + classes_->index[class_of(row)];
  }
  std::int64_t row(int owner, std::int64_t local) const {
    if (!classes_) return owner * part_ + local;
    const std::int64_t classes = classes_of(owner);
    return local / classes * kClasses + owner + local % classes * owners_;
  }
  // The number of the owner's rows among rows [0, end).
  std::int64_t rows_below(int owner, std::int64_t end) const {
    if (!classes_) return std::clamp<std::int64_t>(std::min(end, rows_) - owner * part_, 0, part_);
    const std::int64_t rest = end % kClasses;
    return end / kClasses * classes_of(owner) + (rest > owner ? (rest - owner + owners_ - 1) / owners_ : 0);
  }
  std::int64_t rows_of(int owner) const { return rows_below(owner, rows_); }
  // Calls visit(local number, number in the table) for each row of the owner, in order.
  template <class Visit>
  void each_row(int owner, const Visit& visit) const {
    const std::int64_t count = rows_of(owner);
    std::int64_t local = 0;
    if (!classes_) {
      for (; local < count; ++local) visit(local, owner * part_ + local);
      return;
    }
    for (std::int64_t first = owner; local < count; first += kClasses) {
      for (std::int64_t row = first; row < first + kClasses - owner && local < count; row += owners_)
        visit(local++, row);
    }
  }

 private:
  // By class: its owner, and its number among the classes of the owner.
  struct Classes {
    std::array<std::uint16_t, kClasses> owner, index;
    explicit Classes(int owners) {
      for (std::int64_t c = 0; c < kClasses; ++c) {
        owner[static_cast<std::size_t>(c)] = static_cast<std::uint16_t>(c % owners);
        index[static_cast<std::size_t>(c)] = static_cast<std::uint16_t>(c / owners);
      }
    }
  };
  static std::size_t class_of(std::int64_t row) { return static_cast<std::size_t>(row) % kClasses; }
  std::int64_t classes_of(int owner) const { return (kClasses - owner + owners_ - 1) / owners_; }

  int owners_;
  std::int64_t rows_, part_;
  std::shared_ptr<const Classes> classes_;  // null: by range
};

}  // namespace lockstep::parallel
