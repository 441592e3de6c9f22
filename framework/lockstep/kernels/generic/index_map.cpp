#include "lockstep/kernels/generic/index_map.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/element_bytes.h"

namespace lockstep::kernels::generic {
namespace {

constexpr std::size_t kMostMaps = MappedCopy::kMost;

// The run that covers output index i.
const IndexRun* run_at(const IndexMap& map, std::int64_t i) {
  const IndexRun* run = map.runs.data();
  if (map.runs.size() == 1) return run;
  const auto behind = std::ranges::upper_bound(map.runs, i, {}, &IndexRun::to);
  return &*(behind - 1);
}

std::int64_t input_index(const IndexMap& map, std::int64_t i) {
  const IndexRun& run = *run_at(map, i);
  return run.from < 0 ? -1 : run.from + (i - run.to) * run.step;
}

// Whether `inner`, all of which is copied, is part of the elements of `outer`.
bool joins(const IndexMap& outer, const IndexMap& inner) {
  return inner.whole() &&
         std::ranges::all_of(outer.runs, [](const IndexRun& r) { return r.from < 0 || r.step == 1 || r.length == 1; });
}

IndexMap joined(const IndexMap& outer, std::int64_t inner) {
  IndexMap map{.in = outer.in * inner, .out = outer.out * inner};
  for (const IndexRun& r : outer.runs)
    map.runs.push_back({r.to * inner, r.length * inner, r.from < 0 ? -1 : r.from * inner, 1});
  return map;
}

// Walks over the rows of the output, which are all its axes but the last one.
class RowWalk {
 public:
  RowWalk(const std::vector<IndexMap>& maps, const std::vector<std::int64_t>& strides, std::int64_t row)
      : maps_(maps), strides_(strides), axes_(maps.size() - 1) {
    for (std::size_t d = axes_; d-- > 0;) {
      index_[d] = row % maps[d].out;
      row /= maps[d].out;
    }
    update(0);
  }
  // Where the input's row begins, or -1 for a row that is filled.
  std::int64_t offset() const { return axes_ == 0 ? 0 : offsets_[axes_ - 1]; }
  void next() {
    for (std::size_t d = axes_; d-- > 0;) {
      if (++index_[d] < maps_[d].out) return update(d);
      index_[d] = 0;
    }
  }

 private:
  void update(std::size_t from) {
    for (std::size_t d = from; d < axes_; ++d) {
      const std::int64_t outside = d == 0 ? 0 : offsets_[d - 1], i = input_index(maps_[d], index_[d]);
      offsets_[d] = outside < 0 || i < 0 ? -1 : outside + i * strides_[d];
    }
  }

  const std::vector<IndexMap>& maps_;
  const std::vector<std::int64_t>& strides_;
  std::size_t axes_;
  std::array<std::int64_t, kMostMaps> index_{}, offsets_{};
};

// Elements [begin, end) of an output row; `source` is null where all of it is filled.
template <class Element>
void copy_part(const IndexMap& map, std::int64_t begin, std::int64_t end, const Element* source, Element fill,
               Element* destination) {
  const IndexRun* const last = map.runs.data() + map.runs.size();
  for (const IndexRun* run = run_at(map, begin); run != last && run->to < end; ++run) {
    const std::int64_t from = std::max(begin, run->to), count = std::min(end, run->to + run->length) - from;
    Element* const to = destination + from;
    if (source == nullptr || run->from < 0) {
      std::fill_n(to, count, fill);
      continue;
    }
    const Element* const first = source + run->from + (from - run->to) * run->step;
    if (run->step == 1) {
      std::memcpy(to, first, static_cast<std::size_t>(count) * sizeof(Element));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = first[i * run->step];
    }
  }
}

}  // namespace

bool IndexMap::whole() const {
  return in == out && (runs.empty() || (runs.size() == 1 && runs[0].from == 0 && (runs[0].step == 1 || in == 1)));
}

IndexMap IndexMap::identity(std::int64_t size) {
  IndexMap map{.in = size, .out = size};
  if (size > 0) map.runs = {{0, size, 0, 1}};
  return map;
}

IndexMap IndexMap::of(std::int64_t in, std::int64_t out, const std::function<std::int64_t(std::int64_t)>& index) {
  IndexMap map{.in = in, .out = out};
  for (std::int64_t i = 0; i < out;) {
    IndexRun run{i, 1, index(i), 1};
    for (std::int64_t k = i + 1; k < out; ++k) {
      const std::int64_t next = index(k);
      if (run.length == 1 && run.from >= 0 && next >= 0) run.step = next - run.from;
      const bool goes_on = run.from < 0 ? next < 0 : next >= 0 && next == run.from + run.length * run.step;
      if (!goes_on) break;
      ++run.length;
    }
    if (run.length == 1) run.step = 1;
    i += run.length;
    map.runs.push_back(run);
  }
  return map;
}

MappedCopy::MappedCopy(std::vector<IndexMap> maps, std::size_t element_bytes, std::uint64_t fill)
    : element_bytes_(element_bytes), fill_(fill) {
  for (IndexMap& map : maps) {
    if (map.out == 1 && map.whole()) continue;
    if (!maps_.empty() && joins(maps_.back(), map)) {
      maps_.back() = joined(maps_.back(), map.out);
    } else {
      maps_.push_back(std::move(map));
    }
  }
  if (maps_.empty()) maps_.push_back(IndexMap::identity(1));
  check(maps_.size() <= kMost, "copy", "a value has {} axes, expected at most {}", maps_.size(), kMost);
  strides_.resize(maps_.size(), 1);
  for (std::size_t d = maps_.size() - 1; d > 0; --d) strides_[d - 1] = strides_[d] * maps_[d].in;
}

template <class Element>
void MappedCopy::copy(const Element* source, Element* destination) const {
  const IndexMap& inner = maps_.back();
  std::int64_t elements = 1;
  for (const IndexMap& map : maps_) elements *= map.out;
  parallel_for(elements, 1, [&](std::int64_t begin, std::int64_t end) {
    RowWalk walk(maps_, strides_, begin / inner.out);
    for (std::int64_t at = begin; at < end; walk.next()) {
      const std::int64_t first = at % inner.out, last = std::min(inner.out, first + end - at);
      const Element* const row = walk.offset() < 0 ? nullptr : source + walk.offset();
      copy_part(inner, first, last, row, static_cast<Element>(fill_), destination + (at - first));
      at += last - first;
    }
  });
}

void MappedCopy::operator()(const void* source, void* destination) const {
  with_element_of(element_bytes_, [&]<class Element>(Element) {
    copy(static_cast<const Element*>(source), static_cast<Element*>(destination));
  });
}

MappedSum::Axis MappedSum::axis_of(const IndexMap& map) {
  Axis axis{.in = map.in, .out = map.out};
  axis.starts.resize(static_cast<std::size_t>(map.in) + 1, 0);
  const auto for_readers = [&](const auto& visit) {
    for (const IndexRun& run : map.runs) {
      for (std::int64_t i = 0; run.from >= 0 && i < run.length; ++i)
        visit(static_cast<std::size_t>(run.from + i * run.step), run.to + i);
    }
  };
  for_readers([&](std::size_t j, std::int64_t) { ++axis.starts[j + 1]; });
  for (std::size_t j = 1; j < axis.starts.size(); ++j) axis.starts[j] += axis.starts[j - 1];
  axis.readers.resize(static_cast<std::size_t>(axis.starts.back()));
  std::vector<std::int64_t> next(axis.starts);
  for_readers([&](std::size_t j, std::int64_t i) { axis.readers[static_cast<std::size_t>(next[j]++)] = i; });
  std::int64_t begin = 0, shift = 0;  // of the present stretch of indices with one reader each, by one shift
  for (std::int64_t j = 0; j < axis.in; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const bool single = axis.starts[at + 1] - axis.starts[at] == 1;
    const std::int64_t now = single ? axis.readers[static_cast<std::size_t>(axis.starts[at])] - j : 0;
    if (!single || now != shift) {
      begin = single ? j : j + 1;
      shift = now;
    }
    if (single && j + 1 - begin > axis.single_end - axis.single_begin) {
      axis.single_begin = begin;
      axis.single_end = j + 1;
      axis.shift = shift;
    }
  }
  return axis;
}

MappedSum::MappedSum(const std::vector<IndexMap>& maps) {
  std::vector<IndexMap> few;  // neighbours that are whole are one axis
  for (const IndexMap& map : maps) {
    if (map.whole() && map.out == 1) continue;
    if (!few.empty() && few.back().whole() && map.whole()) {
      few.back() = IndexMap::identity(few.back().out * map.out);
    } else {
      few.push_back(map);
    }
  }
  if (few.empty()) few.push_back(IndexMap::identity(1));
  check(few.size() <= kMostMaps, "sum", "a value has {} axes, expected at most {}", few.size(), kMostMaps);
  for (const IndexMap& map : few) axes_.push_back(axis_of(map));
}

// Adds the elements of one row of dy to the totals of x's elements [begin, end) of a row.
template <class T>
void MappedSum::add_row(const T* row, std::int64_t begin, std::int64_t end, double* totals) const {
  const Axis& axis = axes_.back();
  const std::int64_t first = std::clamp(axis.single_begin, begin, end), last = std::clamp(axis.single_end, first, end);
  const auto add_readers = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t j = from; j < to; ++j) {
      const auto at = static_cast<std::size_t>(j);
      for (std::int64_t r = axis.starts[at]; r < axis.starts[at + 1]; ++r)
        totals[j - begin] += static_cast<double>(row[axis.readers[static_cast<std::size_t>(r)]]);
    }
  };
  add_readers(begin, first);
  for (std::int64_t j = first; j < last; ++j) totals[j - begin] += static_cast<double>(row[j + axis.shift]);
  add_readers(last, end);
}

// One row of dx, which all rows of dy add to whose outer indices read `index`.
template <class T>
void MappedSum::sum_row(const std::int64_t* index, const T* dy, T* dx) const {
  constexpr std::int64_t kBlock = 256;
  const std::size_t outer = axes_.size() - 1;
  for (std::int64_t begin = 0; begin < axes_.back().in; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, axes_.back().in);
    double totals[kBlock];
    std::fill_n(totals, end - begin, 0.0);
    std::array<std::int64_t, kMostMaps> reader{};  // by axis: the number among the readers of its index
    bool more = true;
    for (std::size_t d = 0; d < outer; ++d) {
      const auto j = static_cast<std::size_t>(index[d]);
      reader[d] = axes_[d].starts[j];
      more = more && axes_[d].starts[j + 1] > reader[d];
    }
    while (more) {
      std::int64_t row = 0;
      for (std::size_t d = 0; d < outer; ++d)
        row = row * axes_[d].out + axes_[d].readers[static_cast<std::size_t>(reader[d])];
      add_row(dy + row * axes_.back().out, begin, end, totals);
      std::size_t d = outer;
      for (more = false; !more && d-- > 0;) {
        const auto j = static_cast<std::size_t>(index[d]);
        more = ++reader[d] < axes_[d].starts[j + 1];
        if (!more) reader[d] = axes_[d].starts[j];
      }
    }
    for (std::int64_t j = begin; j < end; ++j) dx[j] = static_cast<T>(totals[j - begin]);
  }
}

template <class T>
void MappedSum::operator()(const T* dy, T* dx) const {
  const std::size_t outer = axes_.size() - 1;
  const std::int64_t width = axes_.back().in;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < outer; ++d) rows *= axes_[d].in;
  parallel_for(rows, width, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::int64_t, kMostMaps> index{};
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t rest = row;
      for (std::size_t d = outer; d-- > 0;) {
        index[d] = rest % axes_[d].in;
        rest /= axes_[d].in;
      }
      sum_row(index.data(), dy, dx + row * width);
    }
  });
}

template void MappedSum::operator()<float>(const float*, float*) const;
template void MappedSum::operator()<double>(const double*, double*) const;

}  // namespace lockstep::kernels::generic
