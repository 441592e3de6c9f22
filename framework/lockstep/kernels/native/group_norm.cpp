#include "lockstep/kernels/native/group_norm.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/row_statistics.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kWork = 4;  // per element, in elements that a plain loop touches

// A channel of a sample is a strip of batch norm, all of whose lanes have the same factors.
template <class T>
const BatchNormTable<T>& strip_table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.batch_norm_f32;
  } else {
    return kernels.batch_norm_bf16;
  }
}

Strip channel_strip(const RowView& v) {
  return {.segment = v.spatial, .stride = v.spatial, .begin = 0, .end = v.spatial};
}

// The sums of dy and of dy (x - mean) of one channel of a sample.
struct ChannelSums {
  double dy, dy_x;
};

double sum_of_lanes(const double* lanes) {
  double sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

template <class T>
ChannelSums channel_sums(const BatchNormTable<T>& strips, const RowView& v, const T* x, const T* dy, float mean) {
  NormaliseLanes lanes;
  std::fill_n(lanes.mean, kLanes, mean);
  double sums[2 * kLanes] = {};
  strips.gradient_sums(channel_strip(v), {.x = x, .dy = dy}, lanes, sums);
  return {sum_of_lanes(sums), sum_of_lanes(sums + kLanes)};
}

// dx of one row, whose channels' sums are written.
template <class T>
void backward_row(const GroupNormBackward<T>& o, const BatchNormTable<T>& strips, std::int64_t row, ChannelSums* sums) {
  const RowView& v = o.view;
  const std::int64_t first = row % v.groups * v.row_channels;
  const T *x = o.x + row * v.size, *dy = o.dy + row * v.size;
  double by_dy = 0, by_dy_x = 0;
  for (std::int64_t c = 0; c < v.row_channels; ++c) {
    sums[c] = channel_sums(strips, v, x + c * v.spatial, dy + c * v.spatial, o.mean[row]);
    const double weight = static_cast<double>(o.weight[first + c]);
    by_dy += weight * sums[c].dy;
    by_dy_x += weight * sums[c].dy_x;
  }
  // dx = inverse a - inverse mean(a) - (x - mean) inverse^3 mean(a (x - mean)) with a = dy weight
  const double inverse = static_cast<double>(o.inverse[row]);
  const double count = static_cast<double>(std::max<std::int64_t>(v.size, 1));
  NormaliseLanes lanes;
  GradientLanes factors;
  std::fill_n(lanes.mean, kLanes, o.mean[row]);
  std::fill_n(factors.x, kLanes, static_cast<float>(-inverse * inverse * inverse * by_dy_x / count));
  std::fill_n(factors.constant, kLanes, static_cast<float>(-inverse * by_dy / count));
  for (std::int64_t c = 0; c < v.row_channels; ++c) {
    std::fill_n(factors.dy, kLanes, o.inverse[row] * o.weight[first + c]);
    const std::int64_t at = c * v.spatial;
    strips.gradient(channel_strip(v), {.x = x + at, .dy = dy + at, .dx = o.dx + row * v.size + at}, lanes, factors);
  }
}

}  // namespace

template <class T>
void group_norm_forward(const GroupNormForward<T>& o, const NativeKernels& kernels) {
  const RowView& v = o.view;
  const RowNormTable<T>& rows = row_norm_table<T>(kernels);
  const BatchNormTable<T>& strips = strip_table<T>(kernels);
  parallel_for(v.rows, v.size * kWork, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = o.x + r * v.size;
      const RowStatistics s = row_statistics(rows, v.size, x, true, o.epsilon);
      o.mean[r] = s.mean;
      o.inverse[r] = s.inverse;
      NormaliseLanes lanes;
      std::fill_n(lanes.mean, kLanes, s.mean);
      for (std::int64_t c = 0; c < v.row_channels; ++c) {
        const std::int64_t channel = r % v.groups * v.row_channels + c, at = c * v.spatial;
        std::fill_n(lanes.scale, kLanes, s.inverse * o.weight[channel]);
        std::fill_n(lanes.shift, kLanes, o.bias ? o.bias[channel] : 0.0F);
        strips.normalise(channel_strip(v),
                         {.x = x + at, .residual = nullptr, .y = o.y + r * v.size + at, .relu = false}, lanes, nullptr);
      }
    }
  });
}

std::size_t group_norm_backward_workspace(const RowView& v) {
  return static_cast<std::size_t>(v.rows * v.row_channels) * sizeof(ChannelSums);
}

template <class T>
void group_norm_backward(const GroupNormBackward<T>& o, const NativeKernels& kernels) {
  const RowView& v = o.view;
  const BatchNormTable<T>& strips = strip_table<T>(kernels);
  auto* const sums = reinterpret_cast<ChannelSums*>(o.workspace);
  parallel_for(v.rows, v.size * kWork, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) backward_row(o, strips, r, sums + r * v.row_channels);
  });
  const std::int64_t channels = v.groups * v.row_channels, samples = v.rows / v.groups;
  for (std::int64_t c = 0; c < channels; ++c) {
    double by_weight = 0, by_bias = 0;
    for (std::int64_t n = 0; n < samples; ++n) {
      const ChannelSums& s = sums[n * channels + c];
      by_weight += static_cast<double>(o.inverse[n * v.groups + c / v.row_channels]) * s.dy_x;
      by_bias += s.dy;
    }
    o.dweight[c] = static_cast<float>(by_weight);
    if (o.dbias) o.dbias[c] = static_cast<float>(by_bias);
  }
}

#define LOCKSTEP_INSTANTIATE(T)                                                          \
  template void group_norm_forward<T>(const GroupNormForward<T>&, const NativeKernels&); \
  template void group_norm_backward<T>(const GroupNormBackward<T>&, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
