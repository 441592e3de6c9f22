#include "lockstep/kernels/generic/reduce_axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "lockstep/core/error.h"
#include "lockstep/core/independent.h"
#include "lockstep/core/math.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/generic/reduce.h"
#include "lockstep/kernels/native/math.h"

namespace lockstep::kernels::generic {
namespace {

using Group = ReduceGeometry::Group;

constexpr std::int64_t kColumns = 256;  // of a row that are reduced at a time
constexpr std::int64_t kShare = 64;     // units and parts together are at least so many, for threads to share
constexpr std::size_t kMaxGroups = 8;

// Offsets of the combinations of some groups' indices, one after the other.
class Walk {
 public:
  Walk(std::span<const Group> groups, std::int64_t position) : groups_(groups) {
    for (std::size_t d = groups.size(); d-- > 0;) {
      index_[d] = position % groups[d].size;
      position /= groups[d].size;
      offset_ += index_[d] * groups[d].stride;
    }
  }
  std::int64_t offset() const { return offset_; }
  void next() {
    for (std::size_t d = groups_.size(); d-- > 0;) {
      offset_ += groups_[d].stride;
      if (++index_[d] < groups_[d].size) return;
      offset_ -= groups_[d].stride * groups_[d].size;
      index_[d] = 0;
    }
  }

 private:
  std::span<const Group> groups_;
  std::array<std::int64_t, kMaxGroups> index_ = {};
  std::int64_t offset_ = 0;
};

// A rule reduces neighbours (along) or rows (across) to states, joins states and makes results of them.
template <class T>
struct SumRule {
  using State = double;
  double divisor;
  State empty() const { return 0; }
  State join(State a, State b) const { return a + b; }
  T result(State s) const { return static_cast<T>(s / divisor); }
  State along(const T* x, std::int64_t n) const {
    return detail::chunk_sum(0, n, [x](std::int64_t i) { return static_cast<double>(x[i]); });
  }
  void across(Walk rows, std::int64_t count, const T* x, std::int64_t width, State* totals) const {
    for (std::int64_t r = 0; r < count; ++r, rows.next()) {
      const T* row = x + rows.offset();
      LOCKSTEP_INDEPENDENT
      for (std::int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(row[c]);
    }
  }
};

template <class T, bool kLargest>
struct ExtremeRule {
  using State = T;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  State empty() const { return kLargest ? -kInfinity : kInfinity; }
  // A NaN stays.
  State join(State a, State b) const { return (kLargest ? b > a : b < a) || b != b ? b : a; }
  T result(State s) const { return s; }
  State along(const T* x, std::int64_t n) const {
    T lanes[detail::kLanes];
    std::fill_n(lanes, detail::kLanes, empty());
    std::int64_t i = 0;
    for (; i + detail::kLanes <= n; i += detail::kLanes) {
      for (std::int64_t l = 0; l < detail::kLanes; ++l) lanes[l] = join(lanes[l], x[i + l]);
    }
    for (; i < n; ++i) lanes[0] = join(lanes[0], x[i]);
    for (std::int64_t l = 1; l < detail::kLanes; ++l) lanes[0] = join(lanes[0], lanes[l]);
    return lanes[0];
  }
  void across(Walk rows, std::int64_t count, const T* x, std::int64_t width, State* states) const {
    for (std::int64_t r = 0; r < count; ++r, rows.next()) {
      const T* row = x + rows.offset();
      for (std::int64_t c = 0; c < width; ++c) states[c] = join(states[c], row[c]);
    }
  }
};

// The sum of exp(x - top), where top is the largest x, or 0 if that is infinite.
struct Exponentials {
  double top, total;
};

template <class T>
struct LogSumExpRule {
  using State = Exponentials;
  using Largest = ExtremeRule<T, true>;
  static double shift(T largest) { return std::isfinite(largest) ? static_cast<double>(largest) : 0; }
  State empty() const { return {0, 0}; }
  State join(State a, State b) const {
    if (b.total == 0) return a;  // nothing, or -infinity alone
    if (a.total == 0) return b;
    // Infinity or NaN among the elements: its top is 0, and the factor of another top would make 0 * infinity of it.
    if (!std::isfinite(a.total) || !std::isfinite(b.total)) return {0, a.total + b.total};
    const double top = std::max(a.top, b.top);
    return {top, a.total * math::exp(a.top - top) + b.total * math::exp(b.top - top)};
  }
  T result(State s) const { return static_cast<T>(math::log(s.total) + s.top); }
  State along(const T* x, std::int64_t n) const {
    State s{shift(Largest().along(x, n)), 0};
    double e[kColumns];
    for (std::int64_t first = 0; first < n; first += kColumns) {
      const std::int64_t count = std::min(kColumns, n - first);
      for (std::int64_t i = 0; i < count; ++i) e[i] = static_cast<double>(x[first + i]) - s.top;
      native::exp_all(count, e, e);
      s.total += detail::chunk_sum(0, count, [&e](std::int64_t i) { return e[i]; });
    }
    return s;
  }
  void across(Walk rows, std::int64_t count, const T* x, std::int64_t width, State* states) const {
    T largest[kColumns];
    std::fill_n(largest, width, Largest().empty());
    Largest().across(rows, count, x, width, largest);
    for (std::int64_t c = 0; c < width; ++c) states[c].top = shift(largest[c]);
    double e[kColumns];
    for (std::int64_t r = 0; r < count; ++r, rows.next()) {
      const T* row = x + rows.offset();
      for (std::int64_t c = 0; c < width; ++c) e[c] = static_cast<double>(row[c]) - states[c].top;
      native::exp_all(width, e, e);
      for (std::int64_t c = 0; c < width; ++c) states[c].total += e[c];
    }
  }
};

// The elements in `range` of one output, whose first element is x[0].
template <class T, class Rule>
typename Rule::State reduce_along(const ReduceGeometry& g, const Rule& rule, const T* x, Range range) {
  if (g.reduced.empty()) return rule.along(x + range.begin, range.size());
  auto state = rule.empty();
  if (range.size() == 0) return state;
  Walk runs(g.reduced, range.begin / g.length);
  std::int64_t at = range.begin % g.length;
  for (std::int64_t left = range.size(); left > 0; runs.next(), at = 0) {
    const std::int64_t count = std::min(left, g.length - at);
    state = rule.join(state, rule.along(x + runs.offset() + at, count));
    left -= count;
  }
  return state;
}

// The states of one output lie `stride` apart.
template <class Rule>
typename Rule::State joined(const Rule& rule, const typename Rule::State* states, std::int64_t stride,
                            std::int64_t count) {
  if (count == 1) return states[0];
  const std::int64_t half = count / 2;
  return rule.join(joined(rule, states, stride, half), joined(rule, states + half * stride, stride, count - half));
}

template <class T, class Rule>
void reduce_rows(const ReduceGeometry& g, const Rule& rule, const T* x, T* y, typename Rule::State* states) {
  const std::int64_t n = g.reduced_elements(), parts = g.parts;
  parallel_for(g.rows * parts, n / parts, [&](std::int64_t begin, std::int64_t end) {
    Walk rows(g.kept, begin / parts);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto state = reduce_along(g, rule, x + rows.offset(), part_of(n, parts, i % parts));
      if (parts == 1) {
        y[i] = rule.result(state);
      } else {
        states[i] = state;
      }
      if (i % parts == parts - 1) rows.next();
    }
  });
  for (std::int64_t row = 0; parts > 1 && row < g.rows; ++row)
    y[row] = rule.result(joined(rule, states + row * parts, 1, parts));
}

template <class T, class Rule>
void reduce_columns(const ReduceGeometry& g, const Rule& rule, const T* x, T* y, typename Rule::State* states) {
  const std::int64_t parts = g.parts, blocks = (g.length + kColumns - 1) / kColumns;
  const auto width = [&](std::int64_t unit) { return std::min(kColumns, g.length - unit % blocks * kColumns); };
  const auto output = [&](std::int64_t unit) { return y + unit / blocks * g.length + unit % blocks * kColumns; };
  parallel_for(g.units() * parts, g.terms / parts * kColumns, [&](std::int64_t begin, std::int64_t end) {
    typename Rule::State own[kColumns];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t unit = i / parts;
      const Range range = part_of(g.terms, parts, i % parts);
      auto* const to = parts == 1 ? own : states + i * kColumns;
      std::fill_n(to, width(unit), rule.empty());
      if (range.size() > 0) {
        const T* from = x + Walk(g.kept, unit / blocks).offset() + unit % blocks * kColumns;
        rule.across(Walk(g.reduced, range.begin), range.size(), from, width(unit), to);
      }
      if (parts > 1) continue;
      T* const out = output(unit);
      for (std::int64_t c = 0, n = width(unit); c < n; ++c) out[c] = rule.result(own[c]);
    }
  });
  for (std::int64_t unit = 0; parts > 1 && unit < g.units(); ++unit) {
    for (std::int64_t c = 0; c < width(unit); ++c)
      output(unit)[c] = rule.result(joined(rule, states + unit * parts * kColumns + c, kColumns, parts));
  }
}

template <class T, class Rule>
void reduce_by(const ReduceGeometry& g, const Rule& rule, const T* x, T* y, void* workspace) {
  auto* const states = static_cast<typename Rule::State*>(workspace);
  g.along ? reduce_rows(g, rule, x, y, states) : reduce_columns(g, rule, x, y, states);
}

}  // namespace

ReduceGeometry::ReduceGeometry(const Shape& shape, const std::vector<int>& axes) {
  struct Run {
    bool reduced;
    Group group;
  };
  std::vector<Run> runs;  // innermost first
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    const bool is_reduced = std::ranges::binary_search(axes, i);
    if (!runs.empty() && runs.back().reduced == is_reduced) {
      runs.back().group.size *= shape[i];
    } else {
      runs.push_back({is_reduced, {shape[i], stride}});
    }
    stride *= shape[i];
  }
  check(runs.size() <= kMaxGroups, "reduce",
        "the axes of {} change {} times between kept and reduced ones, expected at most {} times", shape.str(),
        runs.size() - 1, kMaxGroups - 1);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [is_reduced, group] = runs[i];
    if (i == 0) {
      length = group.size;
      along = is_reduced;
      continue;
    }
    auto& groups = is_reduced ? reduced : kept;
    groups.insert(groups.begin(), group);
    (is_reduced ? terms : rows) *= group.size;
  }
  parts = std::max<std::int64_t>(kShare / std::max<std::int64_t>(units(), 1), 1);
}

std::int64_t ReduceGeometry::units() const { return along ? rows : rows * ((length + kColumns - 1) / kColumns); }

std::size_t reduce_axes_workspace(const ReduceGeometry& g) {
  if (g.parts == 1) return 0;
  return static_cast<std::size_t>(g.units() * g.parts * (g.along ? 1 : kColumns)) * sizeof(Exponentials);
}

template <class T>
void reduce_axes(ReduceOp::Kind kind, const ReduceGeometry& g, const T* x, T* y, void* workspace) {
  using enum ReduceOp::Kind;
  const double count = static_cast<double>(std::max<std::int64_t>(g.reduced_elements(), 1));
  switch (kind) {
    case Sum:
      return reduce_by(g, SumRule<T>{1}, x, y, workspace);
    case Mean:
      return reduce_by(g, SumRule<T>{count}, x, y, workspace);
    case Max:
      return reduce_by(g, ExtremeRule<T, true>(), x, y, workspace);
    case Min:
      return reduce_by(g, ExtremeRule<T, false>(), x, y, workspace);
    case LogSumExp:
      return reduce_by(g, LogSumExpRule<T>(), x, y, workspace);
  }
}

template void reduce_axes<float>(ReduceOp::Kind, const ReduceGeometry&, const float*, float*, void*);
template void reduce_axes<double>(ReduceOp::Kind, const ReduceGeometry&, const double*, double*, void*);

}  // namespace lockstep::kernels::generic
