#include "lockstep/kernels/generic/row_norm.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::kernels::generic {
namespace {

template <class Term>
double row_sum(std::int64_t size, const Term& term) {
  return detail::chunk_sum(0, size, term);
}

template <class T>
double value(T x) {
  return static_cast<double>(x);
}

// The number of the weight of an element of a row: the element's, or in group norm its channel's.
std::int64_t parameter_of(const RowView& v, std::int64_t row, std::int64_t element) {
  return v.groups > 0 ? row % v.groups * v.row_channels + element / v.spatial : element;
}

}  // namespace

template <class T>
void row_norm_forward(const RowNormForward<T>& o) {
  const std::int64_t size = o.view.size;
  const double count = static_cast<double>(std::max<std::int64_t>(size, 1));
  parallel_for(o.view.rows, size * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = o.x + r * size;
      T* y = o.y + r * size;
      const double mean = o.centred ? row_sum(size, [x](std::int64_t i) { return value(x[i]); }) / count : 0;
      const double squares = row_sum(size, [=](std::int64_t i) { return (value(x[i]) - mean) * (value(x[i]) - mean); });
      const double inverse = 1 / std::sqrt(squares / count + o.epsilon);
      if (o.centred) o.mean[r] = static_cast<T>(mean);
      o.inverse[r] = static_cast<T>(inverse);
      for (std::int64_t i = 0; i < size; ++i) {
        double v = (value(x[i]) - mean) * inverse;
        const std::int64_t p = parameter_of(o.view, r, i);
        if (o.weight) v *= value(o.weight[p]);
        if (o.bias) v += value(o.bias[p]);
        y[i] = static_cast<T>(v);
      }
    }
  });
}

std::size_t row_norm_backward_workspace(const RowView& view) {
  return view.groups > 0 ? 0 : 2 * static_cast<std::size_t>(view.size) * sizeof(double);
}

namespace {

// dx = inverse (a - mean(a) - v mean(a v)) with a = dy weight and v = (x - mean) inverse.
template <class T>
void rows_backward(const RowNormBackward<T>& o) {
  const std::int64_t size = o.view.size;
  const double count = static_cast<double>(std::max<std::int64_t>(size, 1));
  parallel_for(o.view.rows, size * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T *x = o.x + r * size, *dy = o.dy + r * size;
      T* dx = o.dx + r * size;
      const double mean = o.centred ? value(o.mean[r]) : 0, inverse = value(o.inverse[r]);
      const auto a = [&](std::int64_t i) {
        return o.weight ? value(dy[i]) * value(o.weight[parameter_of(o.view, r, i)]) : value(dy[i]);
      };
      const auto v = [&](std::int64_t i) { return (value(x[i]) - mean) * inverse; };
      const double by_mean = o.centred ? row_sum(size, a) / count : 0;
      const double by_scale = row_sum(size, [&](std::int64_t i) { return a(i) * v(i); }) / count;
      for (std::int64_t i = 0; i < size; ++i) dx[i] = static_cast<T>(inverse * (a(i) - by_mean - v(i) * by_scale));
    }
  });
}

// Per column the sums over the rows of dy v and of dy, in the order of the rows.
template <class T>
void columns_backward(const RowNormBackward<T>& o, double* by_weight, double* by_bias) {
  constexpr std::int64_t kWidth = 64;
  const std::int64_t size = o.view.size;
  parallel_for((size + kWidth - 1) / kWidth, o.view.rows * kWidth, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kWidth, last = std::min(size, end * kWidth);
    std::fill(by_weight + first, by_weight + last, 0.0);
    std::fill(by_bias + first, by_bias + last, 0.0);
    for (std::int64_t r = 0; r < o.view.rows; ++r) {
      const T *x = o.x + r * size, *dy = o.dy + r * size;
      const double mean = o.centred ? value(o.mean[r]) : 0, inverse = value(o.inverse[r]);
      for (std::int64_t i = first; i < last; ++i) {
        by_weight[i] += value(dy[i]) * ((value(x[i]) - mean) * inverse);
        by_bias[i] += value(dy[i]);
      }
    }
    for (std::int64_t i = first; i < last; ++i) {
      o.dweight[i] = static_cast<T>(by_weight[i]);
      if (o.dbias) o.dbias[i] = static_cast<T>(by_bias[i]);
    }
  });
}

// The same per channel of group norm, sample by sample.
template <class T>
void channels_backward(const RowNormBackward<T>& o) {
  const RowView& v = o.view;
  const std::int64_t per_row = v.row_channels, channels = v.groups * per_row, samples = v.rows / v.groups;
  parallel_for(channels, samples * v.spatial, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      double by_weight = 0, by_bias = 0;
      for (std::int64_t n = 0; n < samples; ++n) {
        const std::int64_t row = n * v.groups + c / per_row, at = (n * channels + c) * v.spatial;
        const T *x = o.x + at, *dy = o.dy + at;
        const double mean = o.centred ? value(o.mean[row]) : 0;
        by_weight += value(o.inverse[row]) *
                     row_sum(v.spatial, [=](std::int64_t i) { return value(dy[i]) * (value(x[i]) - mean); });
        by_bias += row_sum(v.spatial, [=](std::int64_t i) { return value(dy[i]); });
      }
      o.dweight[c] = static_cast<T>(by_weight);
      if (o.dbias) o.dbias[c] = static_cast<T>(by_bias);
    }
  });
}

}  // namespace

// The columns first, as dx may be dy.
template <class T>
void row_norm_backward(const RowNormBackward<T>& o, void* workspace) {
  auto* const sums = static_cast<double*>(workspace);
  if (o.dweight) o.view.groups > 0 ? channels_backward(o) : columns_backward(o, sums, sums + o.view.size);
  rows_backward(o);
}

#define LOCKSTEP_INSTANTIATE(T)                                \
  template void row_norm_forward<T>(const RowNormForward<T>&); \
  template void row_norm_backward<T>(const RowNormBackward<T>&, void*);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
