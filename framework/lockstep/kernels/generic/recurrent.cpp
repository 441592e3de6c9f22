#include "lockstep/kernels/generic/recurrent.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::generic {
namespace {

using native::kLanes;
using native::Strided;

template <class T>
const native::RecurrentTable<T>& recurrent_table() {
  if constexpr (std::is_same_v<T, float>) {
    return native_kernels().recurrent_f32;
  } else {
    return native_kernels().recurrent_f64;
  }
}

std::int64_t panels_of(std::int64_t columns, std::int64_t width) { return (columns + width - 1) / width; }

// Elements from one row of a scratch array to the next, for rows of at least n: an odd number of vectors, so that the
// same columns of many rows do not compete for one place in a cache.
std::int64_t row_stride(std::int64_t n) { return (panels_of(n, 2 * kLanes) * 2 + 1) * kLanes; }

// packed [panels][hidden][gates][kLanes] of W_hh.
template <class T>
void pack_forward(const RecurrentShape& s, const T* w, T* packed) {
  const std::int64_t hidden = s.hidden, gates = s.options.gates(), row = gates * kLanes;
  parallel_for(panels_of(hidden, kLanes), hidden * row, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t first = p * kLanes, width = std::min<std::int64_t>(kLanes, hidden - first);
      T* to = packed + p * hidden * row;
      if (width < kLanes) std::fill_n(to, hidden * row, T(0));
      for (std::int64_t g = 0; g < gates; ++g) {
        for (std::int64_t l = 0; l < width; ++l) {
          const T* from = w + (g * hidden + first + l) * hidden;
          for (std::int64_t k = 0; k < hidden; ++k) to[k * row + g * kLanes + l] = from[k];
        }
      }
    }
  });
}

// packed [panels][gates hidden][2 kLanes] of W_hh.
template <class T>
void pack_backward(const RecurrentShape& s, const T* w, T* packed) {
  constexpr std::int64_t kColumns = 2 * kLanes;
  const std::int64_t hidden = s.hidden, depth = s.gates();
  parallel_for(panels_of(hidden, kColumns), depth * kColumns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t first = p * kColumns, width = std::min(kColumns, hidden - first);
      for (std::int64_t k = 0; k < depth; ++k) {
        T* to = packed + (p * depth + k) * kColumns;
        std::copy_n(w + k * hidden + first, width, to);
        std::fill(to + width, to + kColumns, T(0));
      }
    }
  });
}

// Calls body(direction, begin, end) for ranges of samples.
template <class Body>
void for_samples(const RecurrentShape& s, const Body& body) {
  const std::int64_t work = s.steps * s.gates() * s.hidden;
  parallel_for(s.options.directions * s.samples, work, [&](std::int64_t begin, std::int64_t end) {
    for (int d = 0; d < s.options.directions; ++d) {
      const std::int64_t first = std::max(begin, d * s.samples), last = std::min(end, (d + 1) * s.samples);
      if (first < last) body(d, first - d * s.samples, last - d * s.samples);
    }
  });
}

// One direction's steps for samples from `begin` on: step k of the recurrence is time(k).
struct Walk {
  Walk(const RecurrentShape& shape, int direction, std::int64_t begin) : s(shape), d(direction), first(begin) {}
  std::int64_t time(std::int64_t k) const { return d == 0 ? k : s.steps - 1 - k; }
  // Their rows of an array (T, N, width) at step k.
  template <class T>
  Strided<T> rows(T* array, std::int64_t width, std::int64_t k) const {
    if (array == nullptr) return {};
    return {array + (time(k) * s.samples + first) * width, width};
  }
  // Their states after step k in an array (T, N, D H).
  template <class T>
  Strided<T> states(T* array, std::int64_t k) const {
    const Strided<T> all = rows(array, s.wide(), k);
    return {array == nullptr ? nullptr : all.data + d * s.hidden, all.stride};
  }
  // Their states in an array (N, D H).
  template <class T>
  Strided<T> outer(T* array) const {
    return {array == nullptr ? nullptr : array + first * s.wide() + d * s.hidden, s.wide()};
  }
  // Their states before step k, in `array` (T, N, D H) or in `initial`; null for zeros.
  template <class T>
  Strided<const T> before(const T* array, const T* initial, std::int64_t k) const {
    return k > 0 ? states(array, k - 1) : outer(initial);
  }

  const RecurrentShape& s;
  std::int64_t d, first;
};

// Copies rows of n elements; null rows are 0.
template <class T>
void copy_rows(std::int64_t rows, std::int64_t n, Strided<const T> from, Strided<T> to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* row = to.data + r * to.stride;
    if (from.data == nullptr) {
      std::fill_n(row, n, T(0));
    } else {
      std::copy_n(from.data + r * from.stride, n, row);
    }
  }
}

template <class T>
Strided<const T> constant(Strided<T> a) {
  return {a.data, a.stride};
}

// Arrays of rows in scratch memory, one after the other, of the samples from `begin` on.
template <class T>
Strided<T> scratch_rows(const RecurrentShape& s, T*& scratch, std::int64_t n, std::int64_t begin, std::int64_t end) {
  const std::int64_t stride = row_stride(n);
  const Strided<T> rows{scratch + begin * stride, stride};
  // The kernels compute whole vectors: what lies behind a row would decay to subnormal numbers, which are slow.
  for (std::int64_t r = 0; r < end - begin; ++r) std::fill_n(rows.data + r * stride + n, stride - n, T(0));
  scratch += s.samples * stride;
  return rows;
}

template <class T>
void forward_samples(const RecurrentShape& s, const RecurrentForward<T>& a, int d, std::int64_t begin, std::int64_t end,
                     const T* packed, T* scratch) {
  const Walk at(s, d, begin);
  const auto& own = a.direction[d];
  const std::int64_t rows = end - begin;
  Strided<T> before = scratch_rows(s, scratch, s.hidden, begin, end),
             after = scratch_rows(s, scratch, s.hidden, begin, end);
  const Strided<T> c = scratch_rows(s, scratch, s.hidden, begin, end);
  copy_rows(rows, s.hidden, at.outer(a.initial_h), before);
  copy_rows(rows, s.hidden, at.outer(a.initial_c), c);
  const auto step = s.options.lstm() ? recurrent_table<T>().lstm : recurrent_table<T>().gru;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    step({.rows = rows,
          .hidden = s.hidden,
          .weights = packed,
          .bias = own.bias,
          .product = at.rows(own.product, s.gates(), k),
          .gates = at.rows(own.gates, s.gates(), k),
          .kept = at.states(a.kept, k),
          .y = at.states(a.y, k),
          .own_before = k > 0 || a.initial_h != nullptr ? constant(before) : Strided<const T>{},
          .own_after = after,
          .own_c = c});
    std::swap(before, after);
  }
  copy_rows(rows, s.hidden, constant(before), at.outer(a.h));
  if (s.options.lstm()) copy_rows(rows, s.hidden, constant(c), at.outer(a.c));
}

template <class T>
void backward_samples(const RecurrentShape& s, const RecurrentBackward<T>& a, int d, std::int64_t begin,
                      std::int64_t end, const T* packed, T* scratch) {
  const Walk at(s, d, begin);
  const auto& own = a.direction[d];
  const std::int64_t rows = end - begin;
  const Strided<T> dh = scratch_rows(s, scratch, s.hidden, begin, end),
                   dc = scratch_rows(s, scratch, s.hidden, begin, end);
  Strided<T> after = scratch_rows(s, scratch, s.gates(), begin, end),
             sums = scratch_rows(s, scratch, s.gates(), begin, end);
  copy_rows(rows, s.hidden, at.outer(a.dh), dh);
  copy_rows(rows, s.hidden, at.outer(a.dc), dc);
  const auto step = s.options.lstm() ? recurrent_table<T>().lstm_gradient : recurrent_table<T>().gru_gradient;
  for (std::int64_t k = s.steps - 1; k >= 0; --k) {
    step({.rows = rows,
          .hidden = s.hidden,
          .weights = packed,
          .own_after = k < s.steps - 1 ? constant(after) : Strided<const T>{},
          .own_sums = sums,
          .own_dh = dh,
          .own_dc = dc,
          .saved = {.gates = at.rows(own.gates, s.gates(), k),
                    .kept = at.states(a.kept, k),
                    .c = s.options.lstm() ? at.before(a.kept, a.initial_c, k) : Strided<const T>{},
                    .h = at.before(a.y, a.initial_h, k),
                    .dy = at.states(a.dy, k)},
          .gradients = {.product = at.rows(own.by_product, s.gates(), k),
                        .hidden = at.rows(own.by_hidden, s.gates(), k),
                        .before = at.rows(own.before, s.hidden, k)}});
    std::swap(after, sums);
  }
  if (a.by_initial_h == nullptr) return;
  step({.rows = rows,
        .hidden = s.hidden,
        .weights = packed,
        .own_after = constant(after),
        .own_sums = {},
        .own_dh = dh,
        .own_dc = dc,
        .saved = {},
        .gradients = {}});
  copy_rows(rows, s.hidden, constant(dh), at.outer(a.by_initial_h));
  if (s.options.lstm()) copy_rows(rows, s.hidden, constant(dc), at.outer(a.by_initial_c));
}

// Elements of one direction: its packed weights, and rows of samples.
std::int64_t forward_packed(const RecurrentShape& s) { return panels_of(s.hidden, kLanes) * kLanes * s.gates(); }
std::int64_t forward_rows(const RecurrentShape& s) { return s.samples * 3 * row_stride(s.hidden); }
std::int64_t backward_packed(const RecurrentShape& s) {
  return panels_of(s.hidden, 2 * kLanes) * 2 * kLanes * s.gates();
}
std::int64_t backward_rows(const RecurrentShape& s) {
  return s.samples * 2 * (row_stride(s.hidden) + row_stride(s.gates()));
}

}  // namespace

std::int64_t recurrent_forward_scratch(const RecurrentShape& s) {
  return s.options.directions * (forward_packed(s) + forward_rows(s));
}
std::int64_t recurrent_backward_scratch(const RecurrentShape& s) {
  return s.options.directions * (backward_packed(s) + backward_rows(s));
}

template <class T>
void recurrent_forward(const RecurrentShape& s, const RecurrentForward<T>& a, T* scratch) {
  const std::int64_t packed = forward_packed(s), own = packed + forward_rows(s);
  for (int d = 0; d < s.options.directions; ++d) pack_forward(s, a.direction[d].weight, scratch + d * own);
  for_samples(s, [&](int d, std::int64_t begin, std::int64_t end) {
    forward_samples(s, a, d, begin, end, scratch + d * own, scratch + d * own + packed);
  });
}

template <class T>
void recurrent_backward(const RecurrentShape& s, const RecurrentBackward<T>& a, T* scratch) {
  const std::int64_t packed = backward_packed(s), own = packed + backward_rows(s);
  for (int d = 0; d < s.options.directions; ++d) pack_backward(s, a.direction[d].weight, scratch + d * own);
  for_samples(s, [&](int d, std::int64_t begin, std::int64_t end) {
    backward_samples(s, a, d, begin, end, scratch + d * own, scratch + d * own + packed);
  });
}

template void recurrent_forward<float>(const RecurrentShape&, const RecurrentForward<float>&, float*);
template void recurrent_forward<double>(const RecurrentShape&, const RecurrentForward<double>&, double*);
template void recurrent_backward<float>(const RecurrentShape&, const RecurrentBackward<float>&, float*);
template void recurrent_backward<double>(const RecurrentShape&, const RecurrentBackward<double>&, double*);

}  // namespace lockstep::kernels::generic
