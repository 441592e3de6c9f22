#include "lockstep/kernels/generic/recurrent.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::generic {
namespace {

using native::kPanel;
using pointwise::Code;

std::int64_t panels_of(std::int64_t columns) { return (columns + kPanel - 1) / kPanel; }

template <class T>
const native::ProductTable<T>& product_table() {
  if constexpr (std::is_same_v<T, float>) {
    return native_kernels().product_f32;
  } else {
    return native_kernels().product_f64;
  }
}

template <class T>
void apply(Code code, std::int64_t n, const T* x, T* y) {
  const auto index = static_cast<std::size_t>(code);
  if constexpr (std::is_same_v<T, float>) {
    native_kernels().pointwise_f32.run[index](n, x, nullptr, nullptr, y);
  } else {
    native_kernels().pointwise_f64.run[index](n, x, nullptr, nullptr, y);
  }
}

// Packs b [depth][columns], whose element (k, j) is w[k * row + j * column], for ProductTable.
template <class T>
void pack(std::int64_t depth, std::int64_t columns, const T* w, std::int64_t row, std::int64_t column, T* packed) {
  parallel_for(panels_of(columns), depth * kPanel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t first = p * kPanel, width = std::min<std::int64_t>(kPanel, columns - first);
      for (std::int64_t k = 0; k < depth; ++k) {
        T* to = packed + (p * depth + k) * kPanel;
        for (std::int64_t j = 0; j < width; ++j) to[j] = w[k * row + (first + j) * column];
        std::fill(to + width, to + kPanel, T(0));
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

// The places of one direction's steps: step k of the recurrence is time(k); state(n, k) is the element of y and `kept`
// at which a sample's state after step k begins.
struct Walk {
  Walk(const RecurrentShape& shape, int direction) : s(shape), d(direction) {}
  std::int64_t time(std::int64_t k) const { return d == 0 ? k : s.steps - 1 - k; }
  std::int64_t row(std::int64_t n, std::int64_t k) const { return n * s.steps + time(k); }
  std::int64_t state(std::int64_t n, std::int64_t k) const { return row(n, k) * s.wide() + d * s.hidden; }
  std::int64_t last(std::int64_t n) const { return n * s.wide() + d * s.hidden; }

  const RecurrentShape& s;
  std::int64_t d;
};

// A sample's state before step k in `states` or in `initial`; null for zeros.
template <class T>
const T* before(const Walk& at, std::int64_t n, std::int64_t k, const T* states, const T* initial) {
  if (k > 0) return states + at.state(n, k - 1);
  return initial == nullptr ? nullptr : initial + at.last(n);
}

template <class T>
T or_zero(const T* values, std::int64_t j) {
  return values == nullptr ? T(0) : values[j];
}

// sums holds what the gates are functions of; it is overwritten.
template <class T>
void lstm_cell(std::int64_t hidden, T* sums, const T* c, T* gates, T* next_c, T* h) {
  apply(Code::Sigmoid, 2 * hidden, sums, gates);
  apply(Code::Tanh, hidden, sums + 2 * hidden, gates + 2 * hidden);
  apply(Code::Sigmoid, hidden, sums + 3 * hidden, gates + 3 * hidden);
  const T *i = gates, *f = gates + hidden, *g = gates + 2 * hidden, *o = gates + 3 * hidden;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) next_c[j] = f[j] * or_zero(c, j) + i[j] * g[j];
  apply(Code::Tanh, hidden, next_c, sums);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) h[j] = o[j] * sums[j];
}

// `product` is the input's, sums those of h.
template <class T>
void gru_cell(std::int64_t hidden, const T* product, T* sums, const T* h, T* gates, T* kept, T* next_h) {
  T *r = gates, *z = gates + hidden, *n = gates + 2 * hidden;
  std::copy_n(sums + 2 * hidden, hidden, kept);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < 2 * hidden; ++j) sums[j] = product[j] + sums[j];
  std::copy_n(product + 2 * hidden, hidden, sums + 2 * hidden);  // gates may be product
  apply(Code::Sigmoid, 2 * hidden, sums, gates);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) sums[2 * hidden + j] += r[j] * kept[j];
  apply(Code::Tanh, hidden, sums + 2 * hidden, n);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) next_h[j] = (T(1) - z[j]) * n[j] + z[j] * or_zero(h, j);
}

template <class T>
void forward_samples(const RecurrentShape& s, const RecurrentForward<T>& a, int d, std::int64_t begin, std::int64_t end,
                     const T* packed, T* sums) {
  const Walk at(s, d);
  const auto& own = a.direction[d];
  const std::int64_t gates = s.gates(), panels = panels_of(gates), stride = panels * kPanel;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    for (std::int64_t n = begin; n < end; ++n) {
      T* to = sums + n * stride;
      const T* from = s.options.lstm() ? own.product + at.row(n, k) * gates : own.bias;
      if (from != nullptr) std::copy_n(from, gates, to);
      std::fill(to + (from != nullptr ? gates : 0), to + stride, T(0));
    }
    if (const T* h = before(at, begin, k, static_cast<const T*>(a.y), a.initial_h))
      product_table<T>().add({.rows = end - begin,
                              .depth = s.hidden,
                              .panels = panels,
                              .a = h,
                              .a_stride = k > 0 ? s.steps * s.wide() : s.wide(),
                              .b = packed,
                              .c = sums + begin * stride,
                              .c_stride = stride});
    for (std::int64_t n = begin; n < end; ++n) {
      T *to = own.gates + at.row(n, k) * gates, *kept = a.kept + at.state(n, k), *h = a.y + at.state(n, k);
      if (s.options.lstm()) {
        lstm_cell(s.hidden, sums + n * stride, before(at, n, k, static_cast<const T*>(a.kept), a.initial_c), to, kept,
                  h);
      } else {
        gru_cell(s.hidden, own.product + at.row(n, k) * gates, sums + n * stride,
                 before(at, n, k, static_cast<const T*>(a.y), a.initial_h), to, kept, h);
      }
    }
  }
  for (std::int64_t n = begin; n < end; ++n) {
    std::copy_n(a.y + at.state(n, s.steps - 1), s.hidden, a.h + at.last(n));
    if (s.options.lstm()) std::copy_n(a.kept + at.state(n, s.steps - 1), s.hidden, a.c + at.last(n));
  }
}

// The gradients of one step; dh and dc come in as those of the states after it and leave as those of the states before
// it, dh without the part that goes through W_hh. `spare` has `hidden` elements.
template <class T>
void lstm_gradient(std::int64_t hidden, const T* gates, const T* c, const T* next_c, T* dh, T* dc, T* by_product,
                   T* spare) {
  apply(Code::Tanh, hidden, next_c, spare);
  const T *i = gates, *f = gates + hidden, *g = gates + 2 * hidden, *o = gates + 3 * hidden;
  T *di = by_product, *df = by_product + hidden, *dg = by_product + 2 * hidden, *d_o = by_product + 3 * hidden;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) {
    const T total = dc[j] + dh[j] * o[j] * (T(1) - spare[j] * spare[j]);
    di[j] = total * g[j] * (i[j] * (T(1) - i[j]));
    df[j] = total * or_zero(c, j) * (f[j] * (T(1) - f[j]));
    dg[j] = total * i[j] * (T(1) - g[j] * g[j]);
    d_o[j] = dh[j] * spare[j] * (o[j] * (T(1) - o[j]));
    dc[j] = total * f[j];
    dh[j] = T(0);
  }
}

template <class T>
void gru_gradient(std::int64_t hidden, const T* gates, const T* h, const T* kept, T* dh, T* by_product, T* by_hidden) {
  const T *r = gates, *z = gates + hidden, *n = gates + 2 * hidden;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < hidden; ++j) {
    const T by_n = dh[j] * (T(1) - z[j]) * (T(1) - n[j] * n[j]);
    const T by_r = by_n * kept[j] * (r[j] * (T(1) - r[j]));
    const T by_z = dh[j] * (or_zero(h, j) - n[j]) * (z[j] * (T(1) - z[j]));
    by_product[j] = by_hidden[j] = by_r;
    by_product[hidden + j] = by_hidden[hidden + j] = by_z;
    by_product[2 * hidden + j] = by_n;
    by_hidden[2 * hidden + j] = by_n * r[j];
    dh[j] *= z[j];
  }
}

// Where backward keeps a sample's dh (whole panels), dc and spare elements.
struct BackwardRow {
  explicit BackwardRow(std::int64_t hidden) : padded(panels_of(hidden) * kPanel), stride(padded + 2 * hidden) {}
  std::int64_t padded, stride;
};

template <class T>
void backward_step(const RecurrentShape& s, const RecurrentBackward<T>& a, const Walk& at, std::int64_t n,
                   std::int64_t k, T* dh, T* dc, T* spare) {
  const auto& own = a.direction[at.d];
  const std::int64_t row = at.row(n, k), gates = s.gates();
  for (std::int64_t j = 0; a.dy != nullptr && j < s.hidden; ++j) dh[j] += a.dy[at.state(n, k) + j];
  const T* h = before(at, n, k, a.y, a.initial_h);
  T* kept_h = own.before + row * s.hidden;
  for (std::int64_t j = 0; j < s.hidden; ++j) kept_h[j] = or_zero(h, j);
  if (s.options.lstm()) {
    lstm_gradient(s.hidden, own.gates + row * gates, before(at, n, k, a.kept, a.initial_c), a.kept + at.state(n, k), dh,
                  dc, own.by_product + row * gates, spare);
  } else {
    gru_gradient(s.hidden, own.gates + row * gates, h, a.kept + at.state(n, k), dh, own.by_product + row * gates,
                 own.by_hidden + row * gates);
  }
}

template <class T>
void backward_samples(const RecurrentShape& s, const RecurrentBackward<T>& a, int d, std::int64_t begin,
                      std::int64_t end, const T* packed, T* rows) {
  const Walk at(s, d);
  const BackwardRow place(s.hidden);
  const auto dh = [=](std::int64_t n) { return rows + n * place.stride; };
  const auto dc = [=](std::int64_t n) { return rows + n * place.stride + place.padded; };
  for (std::int64_t n = begin; n < end; ++n) {
    std::fill_n(dh(n), place.padded, T(0));
    for (std::int64_t j = 0; j < s.hidden; ++j) {
      dh(n)[j] = a.dh == nullptr ? T(0) : a.dh[at.last(n) + j];
      dc(n)[j] = a.dc == nullptr ? T(0) : a.dc[at.last(n) + j];
    }
  }
  for (std::int64_t k = s.steps - 1; k >= 0; --k) {
    for (std::int64_t n = begin; n < end; ++n) backward_step(s, a, at, n, k, dh(n), dc(n), dc(n) + s.hidden);
    if (k == 0 && a.by_initial_h == nullptr) break;
    product_table<T>().add({.rows = end - begin,
                            .depth = s.gates(),
                            .panels = panels_of(s.hidden),
                            .a = a.direction[d].by_hidden + at.row(begin, k) * s.gates(),
                            .a_stride = s.steps * s.gates(),
                            .b = packed,
                            .c = dh(begin),
                            .c_stride = place.stride});
  }
  for (std::int64_t n = begin; n < end; ++n) {
    if (a.by_initial_h != nullptr) std::copy_n(dh(n), s.hidden, a.by_initial_h + at.last(n));
    if (a.by_initial_c != nullptr) std::copy_n(dc(n), s.hidden, a.by_initial_c + at.last(n));
  }
}

// Elements of one direction: its packed weights, and rows of samples.
std::int64_t forward_packed(const RecurrentShape& s) { return panels_of(s.gates()) * kPanel * s.hidden; }
std::int64_t forward_rows(const RecurrentShape& s) { return s.samples * panels_of(s.gates()) * kPanel; }
std::int64_t backward_packed(const RecurrentShape& s) { return panels_of(s.hidden) * kPanel * s.gates(); }
std::int64_t backward_rows(const RecurrentShape& s) { return s.samples * BackwardRow(s.hidden).stride; }

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
  for (int d = 0; d < s.options.directions; ++d)  // b[k][j] = W_hh[j][k]
    pack(s.hidden, s.gates(), a.direction[d].weight, 1, s.hidden, scratch + d * own);
  for_samples(s, [&](int d, std::int64_t begin, std::int64_t end) {
    forward_samples(s, a, d, begin, end, scratch + d * own, scratch + d * own + packed);
  });
}

template <class T>
void recurrent_backward(const RecurrentShape& s, const RecurrentBackward<T>& a, T* scratch) {
  const std::int64_t packed = backward_packed(s), own = packed + backward_rows(s);
  for (int d = 0; d < s.options.directions; ++d)
    pack(s.gates(), s.hidden, a.direction[d].weight, s.hidden, 1, scratch + d * own);
  for_samples(s, [&](int d, std::int64_t begin, std::int64_t end) {
    backward_samples(s, a, d, begin, end, scratch + d * own, scratch + d * own + packed);
  });
}

template void recurrent_forward<float>(const RecurrentShape&, const RecurrentForward<float>&, float*);
template void recurrent_forward<double>(const RecurrentShape&, const RecurrentForward<double>&, double*);
template void recurrent_backward<float>(const RecurrentShape&, const RecurrentBackward<float>&, float*);
template void recurrent_backward<double>(const RecurrentShape&, const RecurrentBackward<double>&, double*);

}  // namespace lockstep::kernels::generic
