#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/blocked_convolution.h"
#include "lockstep/kernels/native/rounding.h"

namespace lockstep::kernels::native {
namespace {

// Positions of the output that are summed in one pass: a block of x and two of dy fit into a first-level cache. Images
// without blocks have several times as many calls with less work in each.
constexpr std::int64_t kPassPositions = 128, kPlainPassPositions = 512;
// Blocks of the weight gradient that a unit works on, of 1 KiB each: they fit into a second-level cache.
constexpr std::int64_t kUnitFilters = 128, kUnitOuts = 8, kLeastUnits = 8, kMostParts = 16;

// The part of a range that lies in [begin, end).
TapRange clip(TapRange range, std::int64_t begin, std::int64_t end, std::int64_t stride) {
  const std::int64_t first = std::max(range.first, begin), last = std::min(range.first + range.count, end);
  if (first >= last) return {};
  return {first, last - first, range.source + (first - range.first) * stride};
}

}  // namespace

BlockedWeightGradient::BlockedWeightGradient(const ConvolutionGeometry& g, const NativeKernels& kernels)
    : kernels_(kernels), g_(g), channels_(g), out_{g.out_d(), g.out_h(), g.out_w()} {
  check(supports_blocked(g), "convolution", "{} to {} channels in {} groups do not run on blocks of {} channels",
        g.in_channels, g.out_channels, g.groups, kLanes);
  if (channels_.plain) {
    add_plain_pieces();
  } else {
    add_pieces();
  }
  cut();
}

void BlockedWeightGradient::add_pieces() {
  const std::array<AxisSizes, 3> sizes = axes_of(g_);
  const std::int64_t tap_elements = channels_.depthwise ? kLanes : kLanes * kLanes;
  std::int64_t tap = 0;
  for (std::int64_t d = 0; d < g_.kernel_d; ++d) {
    for (std::int64_t h = 0; h < g_.kernel_h; ++h) {
      for (std::int64_t w = 0; w < g_.kernel_w; ++w, ++tap) {
        pieces_.push_back({.axes = {range_of_tap(sizes[0], d), range_of_tap(sizes[1], h), range_of_tap(sizes[2], w)},
                           .x = 0,
                           .dw = tap * tap_elements});
      }
    }
  }
}

// The taps of a row of the filter take their inputs side by side, unless they are dilated.
void BlockedWeightGradient::add_plain_pieces() {
  const std::array<AxisSizes, 3> sizes = axes_of(g_);
  std::vector<Piece> rows;  // of a filter
  if (g_.dilation_w == 1) {
    for (const AxisClass& c : forward_classes(sizes[2])) {
      if (c.taps.empty()) continue;
      rows.push_back({.axes = {TapRange{}, TapRange{}, TapRange{c.first, c.count, c.taps[0].source}},
                      .x = 0,
                      .dw = c.taps[0].index * kLanes,
                      .inputs = static_cast<std::int64_t>(c.taps.size())});
    }
  } else {
    for (std::int64_t w = 0; w < g_.kernel_w; ++w)
      rows.push_back(
          {.axes = {TapRange{}, TapRange{}, range_of_tap(sizes[2], w)}, .x = 0, .dw = w * kLanes, .inputs = 1});
  }
  const std::int64_t plane = g_.in_d * g_.in_h * g_.in_w;
  for (std::int64_t c = 0; c < g_.in_channels; ++c) {
    for (std::int64_t d = 0; d < g_.kernel_d; ++d) {
      for (std::int64_t h = 0; h < g_.kernel_h; ++h) {
        for (Piece piece : rows) {
          // At most sixteen taps side by side.
          const std::int64_t taps = piece.inputs, tap = ((c * g_.kernel_d + d) * g_.kernel_h + h) * g_.kernel_w;
          piece.axes[0] = range_of_tap(sizes[0], d);
          piece.axes[1] = range_of_tap(sizes[1], h);
          piece.x = c * plane;
          piece.dw += tap * kLanes;
          for (std::int64_t at = 0; at < taps; at += kLanes) {
            piece.inputs = std::min<std::int64_t>(kLanes, taps - at);
            pieces_.push_back(piece);
            piece.x += kLanes;
            piece.dw += kLanes * kLanes;
          }
        }
      }
    }
  }
}

void BlockedWeightGradient::cut() {
  const std::int64_t filter = divided_up(channels_.filter_elements, kLanes * kLanes);
  unit_outs_ = std::min(channels_.out_blocks, std::clamp<std::int64_t>(kUnitFilters / filter, 2, kUnitOuts));
  unit_ins_ = std::clamp<std::int64_t>(kUnitFilters / (filter * unit_outs_), 1, channels_.in_blocks);
  const std::int64_t blocks = units();
  const auto [d, h, w] = out_;
  const std::int64_t wanted = divided_up(kLeastUnits, blocks);
  const std::int64_t batch_parts = std::clamp<std::int64_t>(wanted, 1, std::min(g_.batch, kMostParts));
  depth_parts_ = std::clamp<std::int64_t>(divided_up(wanted, batch_parts), 1, d);
  parts_ = batch_parts * depth_parts_;
  const std::int64_t most = channels_.plain ? kPlainPassPositions : kPassPositions;
  pass_ = {std::clamp<std::int64_t>(most / (d * h * w), 1, g_.batch), std::clamp<std::int64_t>(most / (h * w), 1, d),
           std::clamp<std::int64_t>(most / w, 1, h), std::min(2 * most, w)};
}

std::int64_t BlockedWeightGradient::units() const {
  return parts_ * channels_.groups * divided_up(channels_.out_blocks, unit_outs_) *
         divided_up(channels_.in_blocks, unit_ins_);
}

BlockedWeightGradient::Unit BlockedWeightGradient::unit(std::int64_t index) const {
  const auto take = [&](std::int64_t n) {
    const std::int64_t digit = index % n;
    index /= n;
    return digit;
  };
  Unit u{};
  u.in_block = take(divided_up(channels_.in_blocks, unit_ins_)) * unit_ins_;
  u.in_blocks = std::min(unit_ins_, channels_.in_blocks - u.in_block);
  u.out_block = take(divided_up(channels_.out_blocks, unit_outs_)) * unit_outs_;
  u.out_blocks = std::min(unit_outs_, channels_.out_blocks - u.out_block);
  u.group = take(channels_.groups);
  u.part = take(parts_);
  return u;
}

std::size_t BlockedWeightGradient::workspace_bytes() const {
  return parts_ == 1 ? 0 : static_cast<std::size_t>(parts_ * channels_.weight_elements()) * sizeof(float);
}

void BlockedWeightGradient::run(const Arrays& a) const {
  const std::int64_t work = g_.batch * out_[0] * out_[1] * out_[2] * channels_.weight_elements() / kLanes / units();
  parallel_for(units(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Unit u = unit(i);
      run_unit(a, u, parts_ == 1 ? a.dw : a.workspace + u.part * channels_.weight_elements());
    }
  });
  if (parts_ > 1) add_parts(a);
  if (a.dbias != nullptr) bias_gradient(a);
}

void BlockedWeightGradient::run_unit(const Arrays& a, const Unit& u, float* dw) const {
  const BlockedChannels& c = channels_;
  dw += ((u.group * c.out_blocks + u.out_block) * c.in_blocks + u.in_block) * c.filter_elements;
  for (std::int64_t o = 0; o < u.out_blocks; ++o)
    std::fill_n(dw + o * c.in_blocks * c.filter_elements, u.in_blocks * c.filter_elements, 0.0F);
  const std::int64_t sample = u.part / depth_parts_, slice = u.part % depth_parts_, samples = parts_ / depth_parts_;
  const std::array<std::int64_t, 4> begins{sample * g_.batch / samples, slice * out_[0] / depth_parts_, 0, 0};
  const std::array<std::int64_t, 4> ends{(sample + 1) * g_.batch / samples, (slice + 1) * out_[0] / depth_parts_,
                                         out_[1], out_[2]};
  Pass pass{begins, {}};
  while (pass.begin[0] < ends[0]) {
    for (std::size_t i = 0; i < 4; ++i) pass.end[i] = std::min(ends[i], pass.begin[i] + pass_[i]);
    for (const Piece& piece : pieces_) run_piece(a, u, pass, piece, dw);
    std::size_t axis = 3;
    for (; axis > 0 && pass.end[axis] == ends[axis]; --axis) pass.begin[axis] = begins[axis];
    pass.begin[axis] = pass.end[axis];
  }
}

void BlockedWeightGradient::run_piece(const Arrays& a, const Unit& u, const Pass& pass, const Piece& piece,
                                      float* dw) const {
  const BlockedChannels& c = channels_;
  const TapRange d = clip(piece.axes[0], pass.begin[1], pass.end[1], g_.stride_d);
  const TapRange h = clip(piece.axes[1], pass.begin[2], pass.end[2], g_.stride_h);
  const TapRange w = clip(piece.axes[2], pass.begin[3], pass.end[3], g_.stride_w);
  if (d.count == 0 || h.count == 0 || w.count == 0) return;
  const std::int64_t x_element = c.plain ? 1 : kLanes, out_h = out_[1], out_w = out_[2];
  const std::int64_t x_plane = g_.in_d * g_.in_h * g_.in_w * x_element, dy_plane = out_[0] * out_h * out_w * kLanes;
  const std::int64_t x_sample = x_plane * (c.plain ? g_.in_channels : c.groups * c.in_blocks);
  const std::int64_t dy_sample = dy_plane * c.groups * c.out_blocks;
  std::array<Walk, 4> axes{Walk{w.count, g_.stride_w * x_element, kLanes},
                           Walk{h.count, g_.stride_h * g_.in_w * x_element, out_w * kLanes},
                           Walk{d.count, g_.stride_d * g_.in_h * g_.in_w * x_element, out_h * out_w * kLanes},
                           Walk{pass.end[0] - pass.begin[0], x_sample, dy_sample}};
  const std::int64_t x_step = axes[0].x;
  if (axes[0].count > 1) join_axes(axes);
  const Walk run = axes[0];
  axes[0] = {};
  BlockedTable::Term terms[kPlainPassPositions];
  std::int64_t count = 0;
  for_each_walk(axes, [&](std::int64_t x, std::int64_t dy) { terms[count++] = {x, dy}; });
  const float* x = a.x + piece.x + pass.begin[0] * x_sample + (u.group * c.in_blocks + u.in_block) * x_plane +
                   ((d.source * g_.in_h + h.source) * g_.in_w + w.source) * x_element;
  const float* dy = a.dy + pass.begin[0] * dy_sample + (u.group * c.out_blocks + u.out_block) * dy_plane +
                    ((d.first * out_h + h.first) * out_w + w.first) * kLanes;
  const auto outer = c.depthwise ? kernels_.blocked.depthwise_outer : kernels_.blocked.outer;
  for (std::int64_t o = 0; o < u.out_blocks; o += 2) {
    for (std::int64_t i = 0; i < u.in_blocks; ++i) {
      outer({.positions = run.count,
             .vectors = std::min<std::int64_t>(2, u.out_blocks - o),
             .inputs = piece.inputs,
             .terms = terms,
             .count = count,
             .x = x + i * x_plane,
             .x_step = x_step,
             .dy = dy + o * dy_plane,
             .dy_vector = dy_plane,
             .dw = dw + piece.dw + (o * c.in_blocks + i) * c.filter_elements,
             .dw_vector = c.in_blocks * c.filter_elements,
             .add = true});
    }
  }
}

void BlockedWeightGradient::add_parts(const Arrays& a) const {
  const std::int64_t n = channels_.weight_elements();
  parallel_for(n, parts_, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double total = 0;
      for (std::int64_t part = 0; part < parts_; ++part) total += static_cast<double>(a.workspace[part * n + i]);
      a.dw[i] = static_cast<float>(total);
    }
  });
}

void BlockedWeightGradient::bias_gradient(const Arrays& a) const {
  const std::int64_t blocks = channels_.groups * channels_.out_blocks;
  const std::int64_t positions = out_[0] * out_[1] * out_[2];
  parallel_for(blocks, g_.batch * positions * kLanes, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      double sums[kLanes] = {};
      for (std::int64_t n = 0; n < g_.batch; ++n)
        kernels_.blocked.sum(positions, a.dy + (n * blocks + b) * positions * kLanes, sums);
      for (std::int64_t o = b * kLanes; o < std::min((b + 1) * kLanes, g_.out_channels); ++o)
        a.dbias[o] = static_cast<float>(sums[o - b * kLanes]);
    }
  });
}

}  // namespace lockstep::kernels::native
