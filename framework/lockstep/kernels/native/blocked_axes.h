// The positions of a convolution, by axis: which taps of the filter meet which positions. A convolution on blocks of 16
// channels works on boxes of positions that meet the same taps, so that it needs neither padded copies nor branches at
// the edges.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/common/geometry.h"

namespace lockstep::kernels::native {

struct AxisSizes {
  std::int64_t in, out, kernel, stride, padding, dilation;
};

// Depth, height, width.
std::array<AxisSizes, 3> axes_of(const ConvolutionGeometry& g);

// Positions first, first + step, ... of the result that meet the same taps. From one to the next, the source's
// positions move by source_step.
struct AxisClass {
  struct Tap {
    std::int64_t index, source;  // the source's position that the result's first position meets
    bool operator==(const Tap&) const = default;
  };
  std::int64_t first = 0, step = 1, count = 0, source_step = 1;
  std::vector<Tap> taps;  // by rising index; none: these positions are zero
};

// All positions of the output, and the input's that they read.
std::vector<AxisClass> forward_classes(const AxisSizes& a);
// All positions of the input, and the output's whose gradients they receive. With a stride, neighbours belong to
// different classes.
std::vector<AxisClass> backward_classes(const AxisSizes& a);

// The output positions first to first + count - 1 that tap `index` serves, and the input's position of the first.
struct TapRange {
  std::int64_t first = 0, count = 0, source = 0;
};
TapRange range_of_tap(const AxisSizes& a, std::int64_t index);

// One axis of a box: `count` positions, from one to the next of which x and y move by this many elements.
struct Walk {
  std::int64_t count = 1, x = 0, y = 0;
};

// Joins neighbouring axes, innermost first, where the outer one goes on where the inner one ends.
template <std::size_t N>
void join_axes(std::array<Walk, N>& axes) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < N; ++i) {
    const Walk outer = axes[i];
    axes[i] = {};
    Walk& inner = axes[last];
    if (outer.count == 1) continue;
    if (inner.count == 1) {
      inner = outer;
    } else if (outer.x == inner.x * inner.count && outer.y == inner.y * inner.count) {
      inner.count *= outer.count;
    } else {
      axes[++last] = outer;
    }
  }
}

// Which axis the micro-kernels should take, by the time that tiles of up to 14 positions take: short tiles are waits.
template <std::size_t N>
std::size_t best_run(const std::array<Walk, N>& axes) {
  constexpr std::int64_t kTile = 14, kLeast = 4;
  std::int64_t all = 1;
  for (const Walk& axis : axes) all *= axis.count;
  std::size_t best = 0;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const std::int64_t n = axes[i].count, tiles = (n + kTile - 1) / kTile;
    const std::int64_t time = all / n * tiles * std::max(kLeast, (n + tiles - 1) / tiles);
    if (i == 0 || time * 5 < least * 4) best = i, least = time;  // inner ones lie closer together
  }
  return best;
}

// Calls body(x, y), offsets, for every position of four axes, the last one outermost.
template <class Body>
void for_each_walk(const std::array<Walk, 4>& axes, const Body& body) {
  for (std::int64_t n = 0; n < axes[3].count; ++n) {
    for (std::int64_t d = 0; d < axes[2].count; ++d) {
      for (std::int64_t h = 0; h < axes[1].count; ++h) {
        for (std::int64_t w = 0; w < axes[0].count; ++w)
          body(n * axes[3].x + d * axes[2].x + h * axes[1].x + w * axes[0].x,
               n * axes[3].y + d * axes[2].y + h * axes[1].y + w * axes[0].y);
      }
    }
  }
}

}  // namespace lockstep::kernels::native
