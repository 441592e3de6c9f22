// Convolutions, transposed convolutions, pooling, enlarging and padding over one and three axes (two axes have rows of
// their own beside this file). References loop over three axes, of which missing outer ones have one element.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/ops/conv_transpose.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

using Place = std::array<std::int64_t, 3>;

std::int64_t axis_size(const Shape& s, int axis) {
  const int missing = 5 - s.rank();
  return axis < missing ? 1 : s[2 + axis - missing];
}

Place sizes_of(const Shape& s) { return {axis_size(s, 0), axis_size(s, 1), axis_size(s, 2)}; }

std::int64_t index_of(const Shape& s, std::int64_t n, std::int64_t c, const Place& p) {
  std::int64_t index = n * s[1] + c;
  for (int k = 0; k < 3; ++k) index = index * axis_size(s, k) + p[static_cast<std::size_t>(k)];
  return index;
}

bool is_inside(const Shape& s, const Place& p) {
  for (int k = 0; k < 3; ++k) {
    const std::int64_t i = p[static_cast<std::size_t>(k)];
    if (i < 0 || i >= axis_size(s, k)) return false;
  }
  return true;
}

template <class F>
void for_places(const Place& sizes, const F& f) {
  for (std::int64_t d = 0; d < sizes[0]; ++d) {
    for (std::int64_t h = 0; h < sizes[1]; ++h) {
      for (std::int64_t w = 0; w < sizes[2]; ++w) f(Place{d, h, w});
    }
  }
}

template <class F>
void for_images(const Shape& s, const F& f) {
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t c = 0; c < s[1]; ++c) f(n, c);
  }
}

// The options of three axes; `missing` are those of an outer axis that is not there.
template <class Axis>
std::array<Axis, 3> three(const std::vector<Axis>& axes, Axis missing) {
  std::array<Axis, 3> all{missing, missing, missing};
  std::ranges::copy(axes, all.end() - static_cast<std::ptrdiff_t>(axes.size()));
  return all;
}

// Where tap `tap` of the window at `window` lies.
Place under(const std::array<ConvolutionAxis, 3>& axes, const Place& window, const Place& tap) {
  Place p{};
  for (std::size_t k = 0; k < 3; ++k) {
    p[k] = window[k] * axes[k].stride - axes[k].padding + tap[k] * axes[k].dilation;
  }
  return p;
}

Array convolve(std::span<const Array> in, const ConvolutionOptions& o) {
  const Array &x = in[0], &w = in[1];
  std::vector<std::int64_t> sizes{x.shape[0], w.shape[0]};
  for (std::size_t k = 0; k < o.axes.size(); ++k) {
    const int axis = static_cast<int>(k) + 2;
    const ConvolutionAxis& a = o.axes[k];
    sizes.push_back((x.shape[axis] + 2 * a.padding - a.dilation * (w.shape[axis] - 1) - 1) / a.stride + 1);
  }
  Array y{Shape(sizes)};
  const auto axes = three(o.axes, {});
  const std::int64_t per_group = w.shape[0] / o.groups;
  for_images(y.shape, [&](std::int64_t n, std::int64_t f) {
    for_places(sizes_of(y.shape), [&](const Place& p) {
      double total = in.size() > 2 ? in[2][f] : 0;
      for (std::int64_t c = 0; c < w.shape[1]; ++c) {
        for_places(sizes_of(w.shape), [&](const Place& tap) {
          const Place from = under(axes, p, tap);
          if (!is_inside(x.shape, from)) return;
          total += x[index_of(x.shape, n, f / per_group * w.shape[1] + c, from)] * w[index_of(w.shape, f, c, tap)];
        });
      }
      y[index_of(y.shape, n, f, p)] = total;
    });
  });
  return y;
}

// Each element of x adds its multiple of the filter to y.
Array scattered(std::span<const Array> in, const ConvTransposeOptions& options) {
  const ConvolutionOptions& o = options.convolution;
  const Array &x = in[0], &w = in[1];
  std::vector<std::int64_t> sizes{x.shape[0], w.shape[1] * o.groups};
  for (std::size_t k = 0; k < o.axes.size(); ++k) {
    const int axis = static_cast<int>(k) + 2;
    const ConvolutionAxis& a = o.axes[k];
    const std::int64_t more = options.output_padding.empty() ? 0 : options.output_padding[k];
    sizes.push_back((x.shape[axis] - 1) * a.stride - 2 * a.padding + a.dilation * (w.shape[axis] - 1) + more + 1);
  }
  Array y{Shape(sizes)};
  const auto axes = three(o.axes, {});
  const std::int64_t per_group = x.shape[1] / o.groups;
  for_images(x.shape, [&](std::int64_t n, std::int64_t c) {
    for_places(sizes_of(x.shape), [&](const Place& p) {
      for (std::int64_t f = 0; f < w.shape[1]; ++f) {
        for_places(sizes_of(w.shape), [&](const Place& tap) {
          const Place to = under(axes, p, tap);
          if (!is_inside(y.shape, to)) return;
          y[index_of(y.shape, n, c / per_group * w.shape[1] + f, to)] +=
              x[index_of(x.shape, n, c, p)] * w[index_of(w.shape, c, f, tap)];
        });
      }
    });
  });
  for_images(y.shape, [&](std::int64_t n, std::int64_t f) {
    for_places(sizes_of(y.shape),
               [&](const Place& p) { y[index_of(y.shape, n, f, p)] += in.size() > 2 ? in[2][f] : 0; });
  });
  return y;
}

std::string op_name(std::string_view prefix, std::size_t axes, std::string_view suffix = "") {
  std::string name(prefix);
  name += std::to_string(axes) + "d";
  return name.append(suffix);
}

Row convolution_row(std::string config, Shape x, Shape w, ConvolutionOptions options, bool bias = false) {
  std::vector<Operand> operands{{std::move(x)}, {w}};
  if (bias) operands.push_back({Shape{w[0]}});
  return {.op = op_name("conv", options.axes.size()),
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [=](auto v) { return convolution(v[0], v[1], bias ? v[2] : Value(), options); },
          .reference = [=](auto in) { return convolve(in, options); }};
}

Row transposed_row(std::string config, Shape x, Shape w, ConvTransposeOptions options, bool bias = false) {
  std::vector<Operand> operands{{std::move(x)}, {w}};
  if (bias) operands.push_back({Shape{w[1] * options.convolution.groups}});
  return {.op = op_name("conv", options.convolution.axes.size(), "_backward_data"),
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [=](auto v) { return conv_transpose(v[0], v[1], bias ? v[2] : Value(), options); },
          .reference = [=](auto in) { return scattered(in, options); }};
}

// Windows that end within the padded axis, and with ceil_mode those that begin left of its right padding.
std::int64_t windows(std::int64_t in, const PoolAxis& a, bool ceil) {
  std::int64_t count = 0;
  for (std::int64_t begin = -a.padding;; begin += a.stride) {
    const std::int64_t last = begin + a.dilation * (a.kernel - 1);
    const bool fits = last < in + a.padding, hangs = ceil && begin < in && last - a.stride + 1 < in + a.padding;
    if (!fits && !hangs) return count;
    ++count;
  }
}

Array pooled(const Array& x, const PoolOptions& o, Pool kind) {
  std::vector<std::int64_t> sizes{x.shape[0], x.shape[1]};
  for (std::size_t k = 0; k < o.axes.size(); ++k) {
    sizes.push_back(windows(x.shape[static_cast<int>(k) + 2], o.axes[k], o.ceil_mode));
  }
  Array y{Shape(sizes)};
  const auto axes = three(o.axes, {.kernel = 1, .stride = 1});
  for_images(y.shape, [&](std::int64_t n, std::int64_t c) {
    for_places(sizes_of(y.shape), [&](const Place& p) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      std::int64_t inside = 0, padded = 0;  // elements of the image; those and padding, but nothing beyond it
      for_places({axes[0].kernel, axes[1].kernel, axes[2].kernel}, [&](const Place& tap) {
        Place from{};
        bool within = true;
        for (std::size_t k = 0; k < 3; ++k) {
          from[k] = p[k] * axes[k].stride - axes[k].padding + tap[k] * axes[k].dilation;
          within = within && from[k] < axis_size(x.shape, static_cast<int>(k)) + axes[k].padding;
        }
        padded += within ? 1 : 0;
        if (!is_inside(x.shape, from)) return;
        ++inside;
        sum += x[index_of(x.shape, n, c, from)];
        largest = std::max(largest, x[index_of(x.shape, n, c, from)]);
      });
      const double count = static_cast<double>(o.count_include_pad ? padded : inside);
      y[index_of(y.shape, n, c, p)] = kind == Pool::Max ? largest : sum / count;
    });
  });
  return y;
}

Row pool_row(Pool kind, std::string config, Shape x, PoolOptions options) {
  return {.op = op_name(kind == Pool::Max ? "max_pool" : "average_pool", options.axes.size()),
          .config = std::move(config),
          .operands = {{std::move(x)}},
          .trace = [=](auto v) { return pool(kind, v[0], options); },
          .reference = [=](auto in) { return pooled(in[0], options, kind); }};
}

// Applies a map of one axis after the other: `along` gives the value at place i of a line of values.
using Line = std::vector<double>;
Array along_axes(Array x, const std::vector<std::int64_t>& size,
                 const std::function<double(const Line& line, std::int64_t i, std::int64_t out)>& along) {
  for (std::size_t k = 0; k < size.size(); ++k) {
    const int axis = static_cast<int>(k) + 2;
    Shape shape = x.shape;
    shape[axis] = size[k];
    Array y{shape};
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t in = x.shape[axis], out = size[k], outer = shape.elements() / (out * inner);
    for (std::int64_t a = 0; a < outer * inner; ++a) {
      Line line;
      for (std::int64_t i = 0; i < in; ++i) line.push_back(x[(a / inner * in + i) * inner + a % inner]);
      for (std::int64_t i = 0; i < out; ++i) y[(a / inner * out + i) * inner + a % inner] = along(line, i, out);
    }
    x = std::move(y);
  }
  return x;
}

double nearest_at(const Line& line, std::int64_t i, std::int64_t out) {
  return line[static_cast<std::size_t>(i * static_cast<std::int64_t>(line.size()) / out)];
}

double between(const Line& line, double place) {
  const double last = static_cast<double>(line.size() - 1), at = std::clamp(place, 0.0, last);
  const auto left = static_cast<std::size_t>(std::floor(at));
  const double share = at - std::floor(at);
  return line[left] * (1 - share) + line[std::min(left + 1, line.size() - 1)] * share;
}

double linear_at(const Line& line, std::int64_t i, std::int64_t out) {
  const double step = static_cast<double>(line.size()) / static_cast<double>(out);
  return between(line, (static_cast<double>(i) + 0.5) * step - 0.5);
}

double aligned_at(const Line& line, std::int64_t i, std::int64_t out) {
  if (out == 1) return line[0];
  return between(line, static_cast<double>(i) * static_cast<double>(line.size() - 1) / static_cast<double>(out - 1));
}

double window_mean(const Line& line, std::int64_t i, std::int64_t out) {
  const double in = static_cast<double>(line.size()), n = static_cast<double>(out);
  const auto begin = static_cast<std::size_t>(std::floor(static_cast<double>(i) * in / n));
  const auto end = static_cast<std::size_t>(std::ceil(static_cast<double>(i + 1) * in / n));
  double total = 0;
  for (std::size_t k = begin; k < end; ++k) total += line[k];
  return total / static_cast<double>(end - begin);
}

Row upsample_row(std::string config, Shape x, std::vector<std::int64_t> size, Interpolation mode, bool align = false) {
  const UpsampleOptions options{.size = size, .mode = mode, .align_corners = align};
  const auto along = mode == Interpolation::Nearest ? nearest_at : align ? aligned_at : linear_at;
  return {.op = "resample",
          .config = std::move(config),
          .operands = {{std::move(x)}},
          .trace = [=](auto v) { return upsample(v[0], options); },
          .reference = [=](auto in) { return along_axes(in[0], size, along); }};
}

Row padding_row(std::string config, Shape x, std::vector<std::int64_t> padding, PaddingMode mode) {
  std::vector<std::int64_t> size;
  for (std::size_t k = 0; k < padding.size(); ++k) size.push_back(x[static_cast<int>(k) + 2] + 2 * padding[k]);
  const auto along = [mode](const Line& line, std::int64_t i, std::int64_t out) {
    const auto n = static_cast<std::int64_t>(line.size());
    std::int64_t at = i - (out - n) / 2;
    if (mode == PaddingMode::Zeros && (at < 0 || at >= n)) return 0.0;
    if (mode == PaddingMode::Circular) at = (at + n) % n;
    if (mode == PaddingMode::Replicate) at = std::clamp<std::int64_t>(at, 0, n - 1);
    if (mode == PaddingMode::Reflect) at = n - 1 - std::abs(n - 1 - std::abs(at));
    return line[static_cast<std::size_t>(at)];
  };
  return {.op = "resample",
          .config = std::move(config),
          .operands = {{std::move(x)}},
          .trace = [=](auto v) { return pad_spatial(v[0], padding, mode); },
          .reference = [=](auto in) { return along_axes(in[0], size, along); }};
}

std::vector<Row> convolutions() {
  return {
      convolution_row("3", {2, 3, 7}, {4, 3, 3}, {.axes = {{}}}),
      convolution_row("stride_padding_dilation", {2, 3, 11}, {5, 3, 3},
                      {.axes = {{.stride = 2, .padding = 3, .dilation = 2}}}, true),
      convolution_row("groups", {2, 6, 8}, {4, 3, 5}, {.axes = {{.padding = 2}}, .groups = 2}, true),
      convolution_row("depthwise", {2, 5, 9}, {10, 1, 3}, {.axes = {{.stride = 2, .padding = 1}}, .groups = 5}),
      convolution_row("1", {3, 5, 4}, {7, 5, 1}, {.axes = {{}}}, true),
      convolution_row("sixteen_channels", {2, 16, 6}, {16, 16, 3}, {.axes = {{.padding = 1}}}),
      convolution_row("3x3x3", {2, 2, 4, 5, 3}, {3, 2, 3, 3, 3}, {.axes = {{}, {}, {}}}),
      convolution_row("padding", {1, 3, 3, 4, 5}, {4, 3, 3, 3, 3}, {.axes = {{1, 1}, {1, 1}, {1, 1}}}, true),
      convolution_row("uneven", {2, 2, 5, 4, 6}, {3, 2, 3, 2, 1}, {.axes = {{2, 1}, {1, 0}, {3, 0}}}, true),
      convolution_row("dilation", {1, 2, 6, 5, 7}, {3, 2, 2, 3, 3}, {.axes = {{1, 1, 3}, {1, 2, 2}, {2, 1, 2}}}),
      convolution_row("groups", {2, 4, 3, 4, 3}, {6, 2, 2, 3, 2}, {.axes = {{}, {1, 1}, {1, 1}}, .groups = 2}, true),
      convolution_row("depthwise", {2, 3, 4, 3, 5}, {6, 1, 3, 3, 3}, {.axes = {{2, 1}, {1, 1}, {2, 1}}, .groups = 3}),
      convolution_row("1x1x1", {2, 3, 2, 3, 2}, {4, 3, 1, 1, 1}, {.axes = {{}, {}, {}}}, true),
      convolution_row("1x1x1_stride", {2, 3, 3, 4, 5}, {4, 3, 1, 1, 1}, {.axes = {{2}, {1}, {2}}}, true),
      convolution_row("sixteen_channels", {1, 16, 3, 3, 2}, {16, 16, 2, 2, 1}, {.axes = {{1, 1}, {1, 1}, {}}}),
      convolution_row("one_voxel", {2, 2, 1, 1, 1}, {3, 2, 3, 3, 3}, {.axes = {{1, 1}, {1, 1}, {1, 1}}}),
  };
}

std::vector<Row> transposed_convolutions() {
  return {
      transposed_row("3", {2, 3, 5}, {3, 4, 3}, {.convolution = {.axes = {{}}}}, true),
      transposed_row("all_at_once", {2, 4, 5}, {4, 3, 3},
                     {.convolution = {.axes = {{3, 2, 2}}, .groups = 2}, .output_padding = {2}}, true),
      transposed_row("2x2_stride", {2, 3, 4, 3}, {3, 2, 2, 2}, {.convolution = {.axes = {{2}, {2}}}}, true),
      transposed_row("4x4_of_a_generator", {1, 3, 3, 4}, {3, 2, 4, 4}, {.convolution = {.axes = {{2, 1}, {2, 1}}}}),
      transposed_row("output_padding", {2, 2, 3, 4}, {2, 3, 3, 3},
                     {.convolution = {.axes = {{2, 1}, {3, 1}}}, .output_padding = {1, 2}}, true),
      transposed_row("groups_dilation", {2, 4, 3, 4}, {4, 3, 3, 2},
                     {.convolution = {.axes = {{1, 1, 2}, {2, 0, 3}}, .groups = 2}}, true),
      transposed_row("depthwise", {2, 5, 3, 3}, {5, 1, 3, 3},
                     {.convolution = {.axes = {{2, 1}, {2, 1}}, .groups = 5}, .output_padding = {1, 1}}),
      transposed_row("sixteen_channels", {1, 16, 3, 3}, {16, 16, 2, 2}, {.convolution = {.axes = {{2}, {2}}}}, true),
      transposed_row("2x2x2_stride", {1, 3, 2, 3, 2}, {3, 2, 2, 2, 2}, {.convolution = {.axes = {{2}, {2}, {2}}}},
                     true),
      transposed_row("uneven", {2, 2, 2, 3, 4}, {2, 4, 3, 2, 3},
                     {.convolution = {.axes = {{2, 1}, {1, 0}, {2, 2, 2}}, .groups = 2}, .output_padding = {1, 0, 1}},
                     true),
  };
}

std::vector<Row> pools() {
  std::vector<Row> rows;
  for (const Pool kind : {Pool::Max, Pool::Average}) {
    rows.push_back(pool_row(kind, "2", {2, 3, 7}, {.axes = {{}}}));
    rows.push_back(pool_row(kind, "ceil_mode_padding", {2, 3, 9}, {.axes = {{4, 3, 2}}, .ceil_mode = true}));
    rows.push_back(pool_row(kind, "2x2x2", {2, 3, 4, 5, 3}, {.axes = {{}, {}, {}}}));
    rows.push_back(pool_row(kind, "3x3x3_as_a_stem", {1, 2, 5, 4, 6}, {.axes = {{3, 2, 1}, {3, 2, 1}, {3, 2, 1}}}));
    rows.push_back(pool_row(kind, "uneven_ceil_mode", {2, 2, 6, 5, 4},
                            {.axes = {{3, 2, 0}, {2, 1, 1}, {3, 2, 1}}, .ceil_mode = true}));
  }
  rows.push_back(pool_row(Pool::Max, "dilation", {2, 2, 9}, {.axes = {{3, 1, 1, 3}}}));
  rows.push_back(
      pool_row(Pool::Max, "dilation", {1, 2, 5, 6, 7}, {.axes = {{2, 1, 1, 2}, {3, 2, 1, 2}, {2, 2, 0, 3}}}));
  rows.push_back(
      pool_row(Pool::Average, "padding_not_counted", {2, 2, 7}, {.axes = {{3, 2, 1}}, .count_include_pad = false}));
  rows.push_back(pool_row(Pool::Average, "padding_not_counted", {1, 2, 4, 5, 6},
                          {.axes = {{3, 2, 1}, {2, 2, 1}, {3, 3, 1}}, .count_include_pad = false}));
  rows.push_back({.op = "average_pool3d",
                  .config = "global",
                  .operands = {{Shape{2, 3, 2, 3, 4}}},
                  .trace = [](auto v) { return global_average_pool(v[0]); },
                  .reference =
                      [](auto in) {
                        return along_axes(in[0], {1, 1, 1}, window_mean);
                      }});
  rows.push_back({.op = "average_pool2d",
                  .config = "adaptive",
                  .operands = {{Shape{2, 3, 6, 4}}},
                  .trace =
                      [](auto v) {
                        return adaptive_average_pool(v[0], {3, 2});
                      },
                  .reference =
                      [](auto in) {
                        return along_axes(in[0], {3, 2}, window_mean);
                      }});
  return rows;
}

std::vector<Row> resamplings() {
  using enum Interpolation;
  std::vector<Row> rows{upsample_row("nearest_1d", {2, 3, 5}, {13}, Nearest),
                        upsample_row("nearest_twice", {2, 3, 4, 3}, {8, 6}, Nearest),
                        upsample_row("nearest_smaller", {1, 2, 7, 5}, {3, 4}, Nearest),
                        upsample_row("nearest_3d", {1, 2, 2, 3, 2}, {5, 4, 6}, Nearest),
                        upsample_row("linear_1d", {2, 3, 5}, {12}, Linear),
                        upsample_row("bilinear", {2, 3, 4, 3}, {8, 6}, Linear),
                        upsample_row("bilinear_smaller", {1, 2, 7, 6}, {4, 3}, Linear),
                        upsample_row("bilinear_aligned", {2, 2, 3, 4}, {7, 5}, Linear, true),
                        upsample_row("bilinear_aligned_to_one", {2, 2, 3, 4}, {1, 4}, Linear, true),
                        upsample_row("bilinear_sixteen_channels", {1, 16, 2, 3}, {4, 6}, Linear),
                        upsample_row("trilinear", {1, 2, 2, 3, 2}, {4, 5, 3}, Linear),
                        upsample_row("trilinear_aligned", {1, 2, 2, 3, 3}, {4, 5, 6}, Linear, true),
                        {.op = "resample",
                         .config = "adaptive_means",
                         .operands = {{Shape{2, 3, 7, 5}}},
                         .trace =
                             [](auto v) {
                               return adaptive_average_pool(v[0], {3, 5});
                             },
                         .reference =
                             [](auto in) {
                               return along_axes(in[0], {3, 5}, window_mean);
                             }},
                        {.op = "resample",
                         .config = "adaptive_means_3d",
                         .operands = {{Shape{1, 2, 3, 4, 5}}},
                         .trace =
                             [](auto v) {
                               return adaptive_average_pool(v[0], {2, 2, 3});
                             },
                         .reference =
                             [](auto in) {
                               return along_axes(in[0], {2, 2, 3}, window_mean);
                             }}};
  const std::pair<std::string, PaddingMode> modes[] = {{"zeros", PaddingMode::Zeros},
                                                       {"reflect", PaddingMode::Reflect},
                                                       {"replicate", PaddingMode::Replicate},
                                                       {"circular", PaddingMode::Circular}};
  for (const auto& [name, mode] : modes) {
    rows.push_back(padding_row(name + "_1d", {2, 3, 5}, {2}, mode));
    rows.push_back(padding_row(name + "_2d", {2, 2, 4, 3}, {3, 1}, mode));
    rows.push_back(padding_row(name + "_3d", {1, 2, 3, 2, 4}, {1, 0, 3}, mode));
  }
  return rows;
}

}  // namespace

std::vector<Row> spatial_rows() {
  std::vector<Row> rows;
  for (const auto part : {convolutions, transposed_convolutions, pools, resamplings}) {
    std::ranges::move(part(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace lockstep::optest
