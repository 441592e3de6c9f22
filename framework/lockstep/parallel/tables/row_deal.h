// The distribution of a table's rows over owners, each of which updates its rows. Rows belong to classes, by their
// number modulo kClasses, and classes are dealt to the owners in turn. So numbers that are used often, which lie side
// by side where a vocabulary is sorted, are spread over the owners; and a sum by class does not depend on the number of
// owners. A value; any thread.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

class RowDeal {
 public:
  static constexpr std::int64_t kClasses = 1024;  // the largest number of owners

  explicit RowDeal(int owners) : owners_(owners) {}
  int owners() const { return owners_; }
  static std::int64_t class_of(std::int64_t row) { return row % kClasses; }
  int owner(std::int64_t row) const { return static_cast<int>(class_of(row) % owners_); }
  // The owner's rows are numbered from 0 in the order of their numbers in the table.
  std::int64_t local(std::int64_t row) const {
    return row / kClasses * classes_of(owner(row)) + class_of(row) / owners_;
  }
  std::int64_t row(int owner, std::int64_t local) const {
    const std::int64_t classes = classes_of(owner);
    return local / classes * kClasses + owner + local % classes * owners_;
  }
  // The number of the owner's rows among rows [0, end).
  std::int64_t rows_below(int owner, std::int64_t end) const {
    const std::int64_t rest = end % kClasses;
    return end / kClasses * classes_of(owner) + (rest > owner ? (rest - owner + owners_ - 1) / owners_ : 0);
  }

 private:
  std::int64_t classes_of(int owner) const { return (kClasses - owner + owners_ - 1) / owners_; }
  int owners_;
};

}  // namespace lockstep::parallel
