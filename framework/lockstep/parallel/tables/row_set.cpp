#include "lockstep/parallel/tables/row_set.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::parallel {

IdSort::Groups IdSort::sort(std::span<const std::int64_t> ids, std::int64_t end) {
  constexpr int kMostBits = 11;  // of a digit: its 2048 counters stay in the first-level cache
  const std::size_t n = ids.size();
  check(n < std::numeric_limits<std::uint32_t>::max(), "tables", "{} ids in one lookup, expected fewer than 2^32", n);
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(end - 1, 1))));
  const int digits = (bits + kMostBits - 1) / kMostBits, width = (bits + digits - 1) / digits;
  positions_.resize(n);
  other_.resize(n);
  for (int d = 0; d < digits; ++d) sort_by_digit(ids, d * width, width, d == 0);
  ids_.resize(n + 1);
  starts_.resize(n + 1);
  std::size_t count = 0;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < n; ++i) {  // a repeated id writes behind the last group, which the next one overwrites
    const std::int64_t id = ids[positions_[i]];
    ids_[count] = id;
    starts_[count] = static_cast<std::uint32_t>(i);
    count += id != last;
    last = id;
  }
  starts_[count] = static_cast<std::uint32_t>(n);
  return {std::span(ids_).first(count), std::span(starts_).first(count + 1), positions_};
}

// Equal digits keep their order.
void IdSort::sort_by_digit(std::span<const std::int64_t> ids, int shift, int bits, bool first) {
  const std::size_t digits = std::size_t{1} << bits;
  const auto digit = [=](std::int64_t id) { return (static_cast<std::size_t>(id) >> shift) & (digits - 1); };
  places_.assign(digits + 1, 0);
  for (const std::int64_t id : ids) ++places_[digit(id) + 1];
  for (std::size_t d = 1; d <= digits; ++d) places_[d] += places_[d - 1];
  if (first) {
    for (std::size_t i = 0; i < ids.size(); ++i) other_[places_[digit(ids[i])]++] = static_cast<std::uint32_t>(i);
  } else {
    for (const std::uint32_t position : positions_) other_[places_[digit(ids[position])]++] = position;
  }
  std::swap(positions_, other_);
}

namespace {

// Writes the sum of the rows of these uses to `to`.
template <class T>
void sum_rows(std::span<const std::uint32_t> uses, std::int64_t width, const T* gradient, T* to) {
  constexpr std::int64_t kBlock = 64;
  if (uses.size() == 1) return copy_row(gradient + uses[0] * width, to, width);
  for (std::int64_t at = 0; at < width; at += kBlock) {
    const std::int64_t n = std::min(kBlock, width - at);
    double totals[kBlock];
    std::fill_n(totals, n, 0.0);
    for (const std::uint32_t use : uses) {
      const T* const row = gradient + use * width + at;
      for (std::int64_t c = 0; c < n; ++c) totals[c] += static_cast<double>(row[c]);
    }
    for (std::int64_t c = 0; c < n; ++c) to[at + c] = static_cast<T>(totals[c]);
  }
}

}  // namespace

template <class T>
void sum_uses(IdSort& sorter, std::span<const std::int64_t> ids, std::int64_t end, std::int64_t left_out,
              std::int64_t width, const T* gradient, RowSet<T>& out) {
  const IdSort::Groups groups = sorter.sort(ids, end);
  const auto found = std::ranges::lower_bound(groups.ids, left_out);
  const bool leaves_out = found != groups.ids.end() && *found == left_out;
  const auto left = static_cast<std::size_t>(found - groups.ids.begin());  // its index, if it is there
  const std::size_t count = groups.count() - (leaves_out ? 1 : 0);
  out.resize(count, width);
  parallel_for(static_cast<std::int64_t>(count), width, [&](std::int64_t begin, std::int64_t last) {
    for (std::int64_t at = begin; at < last; ++at) {
      const auto i = static_cast<std::size_t>(at), group = i + (leaves_out && i >= left ? 1 : 0);
      out.ids[i] = groups.ids[group];
      sum_rows(groups.uses(group), width, gradient, out.rows.data() + at * width);
    }
  });
}

template <class T>
void merge_rows(const RowView<T>& a, const RowView<T>& b, std::int64_t width, RowSet<T>& out) {
  out.resize(a.ids.size() + b.ids.size(), width);
  std::int64_t* id = out.ids.data();
  T* to = out.rows.data();
  std::size_t i = 0, j = 0;
  const T *left = a.rows, *right = b.rows;
  while (i < a.ids.size() && j < b.ids.size()) {
    const std::int64_t first = a.ids[i], second = b.ids[j];
    const bool takes_left = first <= second, takes_right = second <= first;
    *id++ = takes_left ? first : second;
    if (takes_left && takes_right) {
      for (std::int64_t c = 0; c < width; ++c) to[c] = left[c] + right[c];
    } else {
      copy_row(takes_left ? left : right, to, width);
    }
    to += width;
    i += takes_left;
    j += takes_right;
    left += takes_left ? width : 0;
    right += takes_right ? width : 0;
  }
  id = std::copy(a.ids.begin() + static_cast<std::ptrdiff_t>(i), a.ids.end(), id);
  id = std::copy(b.ids.begin() + static_cast<std::ptrdiff_t>(j), b.ids.end(), id);
  to = std::copy_n(left, (a.count() - static_cast<std::int64_t>(i)) * width, to);
  std::copy_n(right, (b.count() - static_cast<std::int64_t>(j)) * width, to);
  out.resize(static_cast<std::size_t>(id - out.ids.data()), width);
}

template <class T>
void add_rows(RowSet<T>& sum, const RowSet<T>& more, std::int64_t width, RowSet<T>& scratch) {
  if (more.empty()) return;
  merge_rows(sum.view(), more.view(), width, scratch);
  std::swap(sum, scratch);
}

template void sum_uses(IdSort&, std::span<const std::int64_t>, std::int64_t, std::int64_t, std::int64_t, const float*,
                       RowSet<float>&);
template void sum_uses(IdSort&, std::span<const std::int64_t>, std::int64_t, std::int64_t, std::int64_t, const double*,
                       RowSet<double>&);
template void merge_rows(const RowView<float>&, const RowView<float>&, std::int64_t, RowSet<float>&);
template void merge_rows(const RowView<double>&, const RowView<double>&, std::int64_t, RowSet<double>&);
template void add_rows(RowSet<float>&, const RowSet<float>&, std::int64_t, RowSet<float>&);
template void add_rows(RowSet<double>&, const RowSet<double>&, std::int64_t, RowSet<double>&);

}  // namespace lockstep::parallel
