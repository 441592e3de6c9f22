#include <algorithm>
#include <limits>

#include "lockstep/ops/pool.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

std::int64_t windows(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                     std::int64_t dilation, bool ceil) {
  std::int64_t count =
      0;  // windows that end within the padded image; with ceil_mode also those that begin left of its right padding
  for (std::int64_t begin = -padding;; begin += stride) {
    const bool fits = begin + dilation * (kernel - 1) < in + padding;
    const bool hangs = ceil && begin < in && begin - stride + dilation * (kernel - 1) + 1 < in + padding;
    if (!fits && !hangs) return count;
    ++count;
  }
}

struct Window {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  std::int64_t inside = 0, padded = 0;  // elements of the image; those and padding, but nothing beyond it
};

Window look(const Array& x, std::int64_t n, std::int64_t c, std::int64_t top, std::int64_t left,
            const Pool2dOptions& o) {
  Window window;
  for (std::int64_t a = 0; a < o.kernel_h; ++a) {
    for (std::int64_t b = 0; b < o.kernel_w; ++b) {
      const std::int64_t i = top + a * o.dilation_h, j = left + b * o.dilation_w;
      if (i < x.shape[2] + o.padding_h && j < x.shape[3] + o.padding_w) ++window.padded;
      if (i < 0 || j < 0 || i >= x.shape[2] || j >= x.shape[3]) continue;
      ++window.inside;
      window.sum += x.at(n, c, i, j);
      window.largest = std::max(window.largest, x.at(n, c, i, j));
    }
  }
  return window;
}

Array pooled(const Array& x, const Pool2dOptions& o, Pool kind) {
  const std::int64_t h = windows(x.shape[2], o.kernel_h, o.stride_h, o.padding_h, o.dilation_h, o.ceil_mode);
  const std::int64_t w = windows(x.shape[3], o.kernel_w, o.stride_w, o.padding_w, o.dilation_w, o.ceil_mode);
  Array y(Shape{x.shape[0], x.shape[1], h, w});
  for (std::int64_t n = 0; n < y.shape[0]; ++n) {
    for (std::int64_t c = 0; c < y.shape[1]; ++c) {
      for (std::int64_t i = 0; i < h; ++i) {
        for (std::int64_t j = 0; j < w; ++j) {
          const Window window = look(x, n, c, i * o.stride_h - o.padding_h, j * o.stride_w - o.padding_w, o);
          const std::int64_t count = o.count_include_pad ? window.padded : window.inside;
          y.at(n, c, i, j) = kind == Pool::Max ? window.largest : window.sum / static_cast<double>(count);
        }
      }
    }
  }
  return y;
}

Row row(Pool kind, std::string config, Shape x, Pool2dOptions options) {
  return {
      .op = kind == Pool::Max ? "max_pool2d" : "average_pool2d",
      .config = std::move(config),
      .operands = {{std::move(x)}},
      .trace = [=](auto v) { return kind == Pool::Max ? max_pool2d(v[0], options) : average_pool2d(v[0], options); },
      .reference = [=](auto in) { return pooled(in[0], options, kind); }};
}

}  // namespace

std::vector<Row> pooling_rows() {
  std::vector<Row> rows;
  for (const Pool kind : {Pool::Max, Pool::Average}) {
    rows.push_back(row(kind, "2x2", {2, 3, 5, 6}, {}));
    rows.push_back(row(kind, "3x3_as_a_stem", {2, 2, 7, 8},
                       {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1}));
    rows.push_back(
        row(kind, "overlapping_3x2", {1, 3, 6, 5}, {.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 1}));
    rows.push_back(row(kind, "ceil_mode", {2, 3, 6, 5},
                       {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .ceil_mode = true}));
    rows.push_back(row(kind, "ceil_mode_of_less_than_a_window", {2, 3, 1, 2},
                       {.kernel_h = 2, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .ceil_mode = true}));
    rows.push_back(row(kind, "ceil_mode_padding", {2, 2, 6, 7},
                       {.kernel_h = 3,
                        .kernel_w = 3,
                        .stride_h = 2,
                        .stride_w = 3,
                        .padding_h = 1,
                        .padding_w = 1,
                        .ceil_mode = true}));
    rows.push_back(row(kind, "ceil_mode_drops_a_window_in_padding", {1, 2, 3, 5},
                       {.kernel_h = 2,
                        .kernel_w = 2,
                        .stride_h = 2,
                        .stride_w = 3,
                        .padding_h = 1,
                        .padding_w = 1,
                        .ceil_mode = true}));
    rows.push_back(row(kind, "gaps", {2, 2, 7, 7}, {.kernel_h = 2, .kernel_w = 1, .stride_h = 3, .stride_w = 2}));
  }
  rows.push_back(row(Pool::Max, "dilation", {2, 2, 7, 8},
                     {.kernel_h = 3,
                      .kernel_w = 2,
                      .stride_h = 1,
                      .stride_w = 2,
                      .padding_h = 1,
                      .padding_w = 1,
                      .dilation_h = 2,
                      .dilation_w = 3}));
  rows.push_back(row(Pool::Average, "padding_not_counted", {2, 3, 5, 6},
                     {.kernel_h = 3,
                      .kernel_w = 3,
                      .stride_h = 2,
                      .stride_w = 2,
                      .padding_h = 1,
                      .padding_w = 1,
                      .count_include_pad = false}));
  rows.push_back(row(Pool::Average, "padding_not_counted_ceil_mode", {1, 2, 6, 6},
                     {.kernel_h = 3,
                      .kernel_w = 3,
                      .stride_h = 2,
                      .stride_w = 2,
                      .padding_h = 1,
                      .padding_w = 1,
                      .ceil_mode = true,
                      .count_include_pad = false}));
  rows.push_back({.op = "average_pool2d",
                  .config = "global",
                  .operands = {{Shape{3, 5, 4, 3}}},
                  .trace = [](auto v) { return global_average_pool2d(v[0]); },
                  .reference =
                      [](auto in) {
                        return pooled(in[0], {.kernel_h = 4, .kernel_w = 3, .stride_h = 4, .stride_w = 3},
                                      Pool::Average);
                      }});
  return rows;
}

}  // namespace lockstep::optest
