#include "lockstep/kernels/native/row_norm.h"

#include <algorithm>

#include "lockstep/core/independent.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/row_statistics.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kRowsPerPart = 8;  // at least, of a part whose columns are summed by one thread
constexpr std::int64_t kMostParts = 32;
constexpr std::int64_t kPartElements = 524288;  // of all parts' sums
constexpr std::int64_t kFoldRows = 32;          // added in f32 before they are folded into doubles
constexpr std::int64_t kWork = 4;               // per element, in elements that a plain loop touches

// How the rows are cut into parts, each of which has sums of its own for every column: f32 sums of weight and bias, and
// the doubles into which they are folded.
struct RowParts {
  RowParts(std::int64_t row_count, std::int64_t row_size)
      : rows(row_count),
        size(row_size),
        parts(std::clamp<std::int64_t>(std::min(rows / kRowsPerPart, kPartElements / std::max<std::int64_t>(size, 1)),
                                       1, kMostParts)) {}
  std::int64_t stride() const { return (size + kLanes - 1) / kLanes * kLanes; }  // of one sum, in elements
  std::size_t part_bytes() const { return static_cast<std::size_t>(2 * stride()) * (sizeof(float) + sizeof(double)); }
  double* doubles(std::byte* workspace, std::int64_t part) const {
    return reinterpret_cast<double*>(workspace + static_cast<std::size_t>(part) * part_bytes());
  }
  float* floats(std::byte* workspace, std::int64_t part) const {
    return reinterpret_cast<float*>(doubles(workspace, part) + 2 * stride());
  }

  std::int64_t rows, size, parts;
};

template <class T>
typename RowNormTable<T>::Factors factors_of(const RowNormBackward<T>& o, std::int64_t row, const double* sums) {
  // dx = inverse a - inverse mean(a) - (x - mean) inverse^3 mean(a (x - mean)), of the sums of a and a (x - mean)
  const double inverse = static_cast<double>(o.inverse[row]), count = static_cast<double>(o.size);
  return {.mean = o.centred ? o.mean[row] : 0,
          .inverse = o.inverse[row],
          .x = static_cast<float>(-inverse * inverse * inverse * sums[1] / count),
          .constant = o.centred ? static_cast<float>(-inverse * sums[0] / count) : 0};
}

// dx of these rows; sums for dweight and dbias are added to the given arrays, which may be null.
template <class T>
void backward_rows(const RowNormBackward<T>& o, const RowNormTable<T>& level, Range rows, float* dweight,
                   float* dbias) {
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const typename RowNormTable<T>::Backward args{.n = o.size,
                                                  .x = o.x + r * o.size,
                                                  .dy = o.dy + r * o.size,
                                                  .weight = o.weight,
                                                  .dx = o.dx + r * o.size,
                                                  .dweight = dweight,
                                                  .dbias = dbias};
    double sums[2];
    level.gradient_sums(args, o.centred ? o.mean[r] : 0, sums);
    level.gradient(args, factors_of(o, r, sums));
  }
}

template <class T>
void backward_part(const RowNormBackward<T>& o, const RowNormTable<T>& level, const RowParts& cut, std::int64_t part) {
  const std::int64_t columns = cut.stride();
  double* const doubles = cut.doubles(o.workspace, part);
  float* const floats = cut.floats(o.workspace, part);
  std::fill_n(doubles, 2 * columns, 0.0);
  const Range rows = part_of(cut.rows, cut.parts, part);
  for (std::int64_t first = rows.begin; first < rows.end; first += kFoldRows) {
    std::fill_n(floats, 2 * columns, 0.0F);
    backward_rows(o, level, {first, std::min(rows.end, first + kFoldRows)}, floats,
                  o.dbias ? floats + columns : nullptr);
    LOCKSTEP_INDEPENDENT
    for (std::int64_t i = 0; i < 2 * columns; ++i) doubles[i] += static_cast<double>(floats[i]);
  }
}

}  // namespace

template <class T>
void row_norm_forward(const RowNormForward<T>& o, const NativeKernels& kernels) {
  const RowNormTable<T>& level = row_norm_table<T>(kernels);
  parallel_for(o.rows, o.size * kWork, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = o.x + r * o.size;
      const RowStatistics s = row_statistics(level, o.size, x, o.centred, o.epsilon);
      if (o.centred) o.mean[r] = s.mean;
      o.inverse[r] = s.inverse;
      level.normalise({.n = o.size, .x = x, .weight = o.weight, .bias = o.bias, .y = o.y + r * o.size}, s.mean,
                      s.inverse);
    }
  });
}

std::size_t row_norm_backward_workspace(std::int64_t rows, std::int64_t size) {
  const RowParts cut(rows, size);
  return static_cast<std::size_t>(cut.parts) * cut.part_bytes();
}

template <class T>
void row_norm_backward(const RowNormBackward<T>& o, const NativeKernels& kernels) {
  const RowNormTable<T>& level = row_norm_table<T>(kernels);
  if (!o.dweight) {
    parallel_for(o.rows, o.size * kWork, [&](std::int64_t begin, std::int64_t end) {
      backward_rows(o, level, {begin, end}, nullptr, nullptr);
    });
    return;
  }
  const RowParts cut(o.rows, o.size);
  parallel_for(cut.parts, cut.rows * cut.size / cut.parts * kWork, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) backward_part(o, level, cut, part);
  });
  parallel_for(cut.size, cut.parts * 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double by_weight = 0, by_bias = 0;
      for (std::int64_t part = 0; part < cut.parts; ++part) {
        const double* const sums = cut.doubles(o.workspace, part);
        by_weight += sums[i];
        by_bias += sums[cut.stride() + i];
      }
      o.dweight[i] = static_cast<float>(by_weight);
      if (o.dbias) o.dbias[i] = static_cast<float>(by_bias);
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                      \
  template void row_norm_forward<T>(const RowNormForward<T>&, const NativeKernels&); \
  template void row_norm_backward<T>(const RowNormBackward<T>&, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
