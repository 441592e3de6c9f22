#include "lockstep/ops/convolution.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// y[n, o, i, j] = bias[o] + sum over c, a, b of x[n, c, i s - p + a d, j s - p + b d] w[o, c, a, b], c over the
// channels of o's group.
Array convolve(std::span<const Array> in, const Conv2dOptions& o) {
  const Array &x = in[0], &w = in[1];
  const std::int64_t h = (x.shape[2] + 2 * o.padding_h - o.dilation_h * (w.shape[2] - 1) - 1) / o.stride_h + 1;
  const std::int64_t width = (x.shape[3] + 2 * o.padding_w - o.dilation_w * (w.shape[3] - 1) - 1) / o.stride_w + 1;
  Array y(Shape{x.shape[0], w.shape[0], h, width});
  const std::int64_t per_group = w.shape[0] / o.groups;
  const auto filter = [&](std::int64_t n, std::int64_t f, std::int64_t i, std::int64_t j) {
    double total = in.size() > 2 ? in[2][f] : 0;
    for (std::int64_t c = 0; c < w.shape[1]; ++c) {
      for (std::int64_t a = 0; a < w.shape[2]; ++a) {
        for (std::int64_t b = 0; b < w.shape[3]; ++b) {
          const std::int64_t r = i * o.stride_h - o.padding_h + a * o.dilation_h;
          const std::int64_t s = j * o.stride_w - o.padding_w + b * o.dilation_w;
          if (r < 0 || s < 0 || r >= x.shape[2] || s >= x.shape[3]) continue;
          total += x.at(n, f / per_group * w.shape[1] + c, r, s) * w.at(f, c, a, b);
        }
      }
    }
    return total;
  };
  for (std::int64_t n = 0; n < y.shape[0]; ++n) {
    for (std::int64_t f = 0; f < y.shape[1]; ++f) {
      for (std::int64_t i = 0; i < h; ++i) {
        for (std::int64_t j = 0; j < width; ++j) y.at(n, f, i, j) = filter(n, f, i, j);
      }
    }
  }
  return y;
}

Row row(std::string config, Shape x, Shape w, Conv2dOptions options, bool bias = false) {
  std::vector<Operand> operands{{std::move(x)}, {w}};
  if (bias) operands.push_back({Shape{w[0]}});
  return {.op = "conv2d",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [=](auto v) { return conv2d(v[0], v[1], bias ? v[2] : Value(), options); },
          .reference = [=](auto in) { return convolve(in, options); }};
}

}  // namespace

std::vector<Row> convolution_rows() {
  return {
      row("3x3", {2, 3, 5, 6}, {4, 3, 3, 3}, {}),
      row("3x3_padding", {2, 3, 5, 7}, {5, 3, 3, 3}, {.padding_h = 1, .padding_w = 1}, true),
      row("3x2_stride", {2, 3, 7, 8}, {4, 3, 3, 2}, {.stride_h = 2, .stride_w = 3}),
      row("stride_leaves_a_rest", {1, 2, 8, 9}, {3, 2, 3, 3}, {.stride_h = 2, .stride_w = 3, .padding_h = 1}, true),
      row("uneven_padding", {2, 2, 4, 5}, {3, 2, 3, 3}, {.padding_h = 2, .padding_w = 1}),
      row("dilation", {2, 2, 7, 9}, {3, 2, 3, 3}, {.padding_h = 1, .padding_w = 2, .dilation_h = 2, .dilation_w = 3},
          true),
      row("groups", {2, 6, 5, 4}, {4, 3, 3, 3}, {.padding_h = 1, .padding_w = 1, .groups = 2}, true),
      row("depthwise", {2, 5, 5, 5}, {10, 1, 3, 3},
          {.stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1, .groups = 5}, true),
      row("1x1", {3, 5, 3, 4}, {7, 5, 1, 1}, {}, true),
      row("1x1_stride", {2, 4, 5, 5}, {3, 4, 1, 1}, {.stride_h = 2, .stride_w = 2}),
      row("7x7_as_a_stem", {1, 3, 11, 10}, {4, 3, 7, 7},
          {.stride_h = 2, .stride_w = 2, .padding_h = 3, .padding_w = 3}),
      row("all_at_once", {2, 4, 9, 8}, {6, 2, 3, 2},
          {.stride_h = 2, .stride_w = 1, .padding_h = 2, .padding_w = 1, .dilation_h = 2, .dilation_w = 2, .groups = 2},
          true),
      row("sixteen_channels", {2, 16, 4, 4}, {16, 16, 3, 3}, {.padding_h = 1, .padding_w = 1}),
      row("filter_as_large_as_the_image", {2, 3, 4, 3}, {5, 3, 4, 3}, {}, true),
      row("one_pixel", {2, 3, 1, 1}, {4, 3, 3, 3}, {.padding_h = 1, .padding_w = 1}),
  };
}

}  // namespace lockstep::optest
