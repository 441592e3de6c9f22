#include "lockstep/kernels/generic/indexing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/element_bytes.h"

namespace lockstep::kernels::generic {
namespace {

constexpr std::size_t kMostAxes = 8;  // of ElementGather

// The row of element i, and its position within the row as text: "" where a row has one index.
std::pair<std::int64_t, std::string> position_of(const std::vector<std::int64_t>& shape, std::int64_t i) {
  std::vector<std::int64_t> position;
  for (std::size_t d = shape.size(); d-- > 1;) {
    position.insert(position.begin(), i % shape[d]);
    i /= shape[d];
  }
  return {i, position.empty() ? "" : fmt::format(" at position ({})", fmt::join(position, ", "))};
}

}  // namespace

template <class Index>
void check_indices(const IndexSource& source, const Index* indices) {
  std::int64_t count = 1;
  for (const std::int64_t size : source.shape) count *= size;
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] >= 0 && indices[i] < source.size) continue;
    const auto [row, position] = position_of(source.shape, i);
    const std::string path = source.path.empty() ? "" : source.path + ": ";
    const std::string what = source.field.empty() ? "the index" : fmt::format("'{}'", source.field);
    throw SampleError(
        fmt::format("[{}] {}{} of ", source.op, path, what), row,
        fmt::format("{} is {}, expected 0 to {}: {}", position, indices[i], source.size - 1, source.reason));
  }
}

template void check_indices<std::int32_t>(const IndexSource&, const std::int32_t*);
template void check_indices<std::int64_t>(const IndexSource&, const std::int64_t*);

void take_rows(const RowGeometry& g, std::size_t element_bytes, const void* x, const std::int32_t* indices, void* y) {
  const std::size_t row = static_cast<std::size_t>(g.inner) * element_bytes;
  if (row == 0) return;
  const auto* const source = static_cast<const std::byte*>(x);
  auto* const destination = static_cast<std::byte*>(y);
  parallel_for(g.outer * g.count, g.inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = indices[i % g.count];
      std::byte* const to = destination + static_cast<std::size_t>(i) * row;
      if (index == g.masked) {
        std::memset(to, 0, row);
      } else {
        std::memcpy(to, source + static_cast<std::size_t>(i / g.count * g.size + index) * row, row);
      }
    }
  });
}

std::int64_t add_rows_scratch(const RowGeometry& g) { return g.size + 1 + g.count; }

template <class T>
void add_rows(const RowGeometry& g, const T* dy, const std::int32_t* indices, std::int64_t* scratch, T* dx) {
  constexpr std::int64_t kBlock = 256;
  // The uses of each row in rising order: uses[starts[j]] to uses[starts[j + 1]].
  std::int64_t *const starts = scratch, *const uses = scratch + g.size + 1;
  std::fill_n(starts, g.size + 1, 0);
  for (std::int64_t k = 0; k < g.count; ++k) ++starts[indices[k]];
  for (std::int64_t j = 1; j <= g.size; ++j) starts[j] += starts[j - 1];
  for (std::int64_t k = g.count; k-- > 0;) uses[--starts[indices[k]]] = k;
  parallel_for(g.outer * g.size, g.inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t j = i % g.size, first = starts[j], last = j == g.masked ? first : starts[j + 1];
      const T* const from = dy + i / g.size * g.count * g.inner;
      T* const to = dx + i * g.inner;
      if (first == last) {
        std::fill_n(to, g.inner, T{0});
        continue;
      }
      if (last - first == 1) {
        std::copy_n(from + uses[first] * g.inner, g.inner, to);
        continue;
      }
      for (std::int64_t at = 0; at < g.inner; at += kBlock) {
        const std::int64_t n = std::min(kBlock, g.inner - at);
        double totals[kBlock];
        std::fill_n(totals, n, 0.0);
        for (std::int64_t use = first; use < last; ++use) {
          const T* const row = from + uses[use] * g.inner + at;
          for (std::int64_t c = 0; c < n; ++c) totals[c] += static_cast<double>(row[c]);
        }
        for (std::int64_t c = 0; c < n; ++c) to[at + c] = static_cast<T>(totals[c]);
      }
    }
  });
}

template void add_rows<float>(const RowGeometry&, const float*, const std::int32_t*, std::int64_t*, float*);
template void add_rows<double>(const RowGeometry&, const double*, const std::int32_t*, std::int64_t*, double*);

ElementGather::ElementGather(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& indices, int axis) {
  check(indices.size() <= kMostAxes, "gather", "the indices have {} dimensions, expected at most {}", indices.size(),
        kMostAxes);
  axes_.resize(indices.size());
  for (std::size_t d = indices.size(); d-- > 0;) {
    const bool own = static_cast<int>(d) == axis;
    axes_[d] = {indices[d], own ? 0 : x_elements_};
    if (own) stride_ = x_elements_;
    if (static_cast<int>(d) < axis) outer_ *= indices[d];
    x_elements_ *= x[d];
    elements_ *= indices[d];
  }
}

// Calls visit(element of the indices, offset in x without the part of its index) for elements [begin, end) in order.
template <class Visit>
void ElementGather::for_elements(std::int64_t begin, std::int64_t end, const Visit& visit) const {
  std::array<std::int64_t, kMostAxes> index{};
  std::int64_t offset = 0, rest = begin;
  for (std::size_t d = axes_.size(); d-- > 0;) {
    index[d] = rest % axes_[d].size;
    rest /= axes_[d].size;
    offset += index[d] * axes_[d].stride;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    visit(i, offset);
    for (std::size_t d = axes_.size(); d-- > 0;) {
      offset += axes_[d].stride;
      if (++index[d] < axes_[d].size) break;
      offset -= axes_[d].size * axes_[d].stride;
      index[d] = 0;
    }
  }
}

void ElementGather::gather(std::size_t element_bytes, const void* x, const std::int32_t* indices, void* y) const {
  with_element_of(element_bytes, [&]<class Element>(Element) {
    const auto* const from = static_cast<const Element*>(x);
    auto* const to = static_cast<Element*>(y);
    parallel_for(elements_, 1, [&](std::int64_t begin, std::int64_t end) {
      for_elements(begin, end,
                   [&](std::int64_t i, std::int64_t offset) { to[i] = from[offset + indices[i] * stride_]; });
    });
  });
}

template <class T>
void ElementGather::scatter_add(const T* dy, const std::int32_t* indices, double* totals, T* dx) const {
  std::fill_n(totals, x_elements_, 0.0);
  if (elements_ > 0) {
    const std::int64_t each = elements_ / outer_;  // elements that share no element of x with others
    parallel_for(outer_, each, [&](std::int64_t begin, std::int64_t end) {
      for_elements(begin * each, end * each, [&](std::int64_t i, std::int64_t offset) {
        totals[offset + indices[i] * stride_] += static_cast<double>(dy[i]);
      });
    });
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    parallel_for(x_elements_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) dx[i] = static_cast<T>(totals[i]);
    });
  }
}

template void ElementGather::scatter_add<float>(const float*, const std::int32_t*, double*, float*) const;
template void ElementGather::scatter_add<double>(const double*, const std::int32_t*, double*, double*) const;

}  // namespace lockstep::kernels::generic
