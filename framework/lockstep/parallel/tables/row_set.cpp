#include "lockstep/parallel/tables/row_set.h"

#include <algorithm>
#include <array>
#include <bit>

namespace lockstep::parallel {

std::span<const IdSort::Use> IdSort::sort(std::span<const std::int64_t> ids, std::int64_t end) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kBits;
  uses_.resize(ids.size());
  other_.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) uses_[i] = {ids[i], static_cast<std::int64_t>(i)};
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(end - 1, 0))));
  for (int shift = 0; shift < bits; shift += kBits) {
    const auto digit = [shift](const Use& use) { return static_cast<std::size_t>(use.id >> shift) & (kDigits - 1); };
    std::array<std::uint32_t, kDigits + 1> starts{};
    for (const Use& use : uses_) ++starts[digit(use) + 1];
    for (std::size_t d = 1; d <= kDigits; ++d) starts[d] += starts[d - 1];
    for (const Use& use : uses_) other_[starts[digit(use)]++] = use;
    std::swap(uses_, other_);
  }
  return uses_;
}

namespace {

// Writes the sum of the rows of these uses to `to`.
template <class T>
void sum_rows(std::span<const IdSort::Use> uses, std::int64_t width, const T* gradient, T* to) {
  constexpr std::int64_t kBlock = 256;
  if (uses.size() == 1) {
    std::copy_n(gradient + uses[0].position * width, width, to);
    return;
  }
  for (std::int64_t at = 0; at < width; at += kBlock) {
    const std::int64_t n = std::min(kBlock, width - at);
    double totals[kBlock];
    std::fill_n(totals, n, 0.0);
    for (const IdSort::Use& use : uses) {
      const T* const row = gradient + use.position * width + at;
      for (std::int64_t c = 0; c < n; ++c) totals[c] += static_cast<double>(row[c]);
    }
    for (std::int64_t c = 0; c < n; ++c) to[at + c] = static_cast<T>(totals[c]);
  }
}

}  // namespace

template <class T>
void sum_uses(IdSort& sorter, std::span<const std::int64_t> ids, std::int64_t end, std::int64_t left_out,
              std::int64_t width, const T* gradient, RowSet<T>& out) {
  const std::span<const IdSort::Use> uses = sorter.sort(ids, end);
  out.clear();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const bool first = i == 0 || uses[i].id != uses[i - 1].id;
    if (first && uses[i].id != left_out) out.ids.push_back(uses[i].id);
  }
  out.rows.resize(out.ids.size() * static_cast<std::size_t>(width));
  T* to = out.rows.data();
  for (std::size_t begin = 0, last = 0; begin < uses.size(); begin = last) {
    while (last < uses.size() && uses[last].id == uses[begin].id) ++last;
    if (uses[begin].id == left_out) continue;
    sum_rows(uses.subspan(begin, last - begin), width, gradient, to);
    to += width;
  }
}

template <class T>
void add_rows(RowSet<T>& sum, const RowSet<T>& more, std::int64_t width, RowSet<T>& scratch) {
  if (more.empty()) return;
  const auto w = static_cast<std::size_t>(width);
  scratch.clear();
  scratch.ids.reserve(sum.ids.size() + more.ids.size());
  std::ranges::set_union(sum.ids, more.ids, std::back_inserter(scratch.ids));
  scratch.rows.resize(scratch.ids.size() * w);
  std::size_t a = 0, b = 0;
  T* to = scratch.rows.data();
  for (const std::int64_t id : scratch.ids) {
    const bool in_sum = a < sum.ids.size() && sum.ids[a] == id, in_more = b < more.ids.size() && more.ids[b] == id;
    const T* const left = sum.rows.data() + a * w;
    const T* const right = more.rows.data() + b * w;
    if (in_sum && in_more) {
      for (std::size_t c = 0; c < w; ++c) to[c] = left[c] + right[c];
    } else {
      std::copy_n(in_sum ? left : right, w, to);
    }
    a += in_sum;
    b += in_more;
    to += w;
  }
  std::swap(sum, scratch);
}

template void sum_uses<float>(IdSort&, std::span<const std::int64_t>, std::int64_t, std::int64_t, std::int64_t,
                              const float*, RowSet<float>&);
template void sum_uses<double>(IdSort&, std::span<const std::int64_t>, std::int64_t, std::int64_t, std::int64_t,
                               const double*, RowSet<double>&);
template void add_rows<float>(RowSet<float>&, const RowSet<float>&, std::int64_t, RowSet<float>&);
template void add_rows<double>(RowSet<double>&, const RowSet<double>&, std::int64_t, RowSet<double>&);

}  // namespace lockstep::parallel
