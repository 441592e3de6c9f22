#include "lockstep/kernels/native/blocked_convolution.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/rounding.h"

namespace lockstep::kernels::native {
namespace {

// More input channels than these fill a block of 16 well enough.
constexpr std::int64_t kMostPlainChannels = 8;

// Inputs of 16 in one call: the weights of two blocks of outputs then lie in the first-level cache.
constexpr std::int64_t kChunkTerms = 9;
// Of source and result that a unit touches in one pass over its blocks: they stay in the second-level cache.
constexpr std::int64_t kUnitBytes = 320 * 1024;
constexpr std::int64_t kUnitBlocks = 16, kLeastPositions = 56, kLeastUnits = 8;

std::int64_t product(const std::array<std::int64_t, 3>& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

}  // namespace

BlockedChannels::BlockedChannels(const ConvolutionGeometry& g)
    : depthwise(g.groups > 1 && g.groups == g.in_channels && g.groups == g.out_channels),
      plain(g.groups == 1 && g.in_channels <= kMostPlainChannels),
      groups(depthwise ? divided_up(g.groups, kLanes) : g.groups),
      in_blocks(depthwise || plain ? 1 : divided_up(g.in_channels / g.groups, kLanes)),
      out_blocks(depthwise ? 1 : divided_up(g.out_channels / g.groups, kLanes)),
      taps(g.kernel_d * g.kernel_h * g.kernel_w),
      filter_elements(taps * kLanes *
                      (depthwise ? 1
                       : plain   ? g.in_channels
                                 : kLanes)) {}

bool supports_blocked(const ConvolutionGeometry& g) {
  if (g.batch < 1 || g.in_d * g.in_h * g.in_w < 1 || g.out_d() * g.out_h() * g.out_w() < 1) return false;
  if (g.in_channels < 1 || g.out_channels < 1 || g.kernel_d * g.kernel_h * g.kernel_w < 1) return false;
  if (g.groups == 1 || BlockedChannels(g).depthwise) return true;
  return g.in_channels / g.groups % kLanes == 0 && g.out_channels / g.groups % kLanes == 0;
}

BlockedConvolution::BlockedConvolution(const ConvolutionGeometry& g, BlockedDirection direction,
                                       const NativeKernels& kernels)
    : kernels_(kernels), g_(g), direction_(direction), channels_(g) {
  check(supports_blocked(g), "convolution", "{} to {} channels in {} groups do not run on blocks of {} channels",
        g.in_channels, g.out_channels, g.groups, kLanes);
  from_ = {g.in_d, g.in_h, g.in_w};
  to_ = {g.out_d(), g.out_h(), g.out_w()};
  if (backward()) {
    std::swap(from_, to_);
    if (channels_.plain) {  // the result has a block with padding
      channels_.plain = false;
      channels_.filter_elements = channels_.taps * kLanes * kLanes;
    }
    std::swap(channels_.in_blocks, channels_.out_blocks);
  }
  add_boxes();
  cut_units();
}

void BlockedConvolution::add_boxes() {
  std::array<std::vector<AxisClass>, 3> classes;
  const std::array<AxisSizes, 3> sizes = axes_of(g_);
  std::int64_t taps = 1;  // the most that one position meets; in a gradient with strides these are few
  for (std::size_t i = 0; i < 3; ++i) {
    classes[i] = backward() ? backward_classes(sizes[i]) : forward_classes(sizes[i]);
    std::size_t most = 1;
    for (const AxisClass& c : classes[i]) most = std::max(most, c.taps.size());
    taps *= static_cast<std::int64_t>(most);
  }
  if (!channels_.plain && taps <= kChunkTerms) chunk_blocks_ = std::min(channels_.in_blocks, kChunkTerms / taps);
  if (!channels_.plain && taps > kChunkTerms) tap_parts_ = divided_up(channels_.taps, kChunkTerms);
  for (const AxisClass& d : classes[0]) {
    for (const AxisClass& h : classes[1]) {
      for (const AxisClass& w : classes[2]) {
        Box box{};
        const std::array<const AxisClass*, 3> own{&d, &h, &w};
        for (std::size_t i = 0; i < 3; ++i)
          box.axes[i] = {own[i]->first, own[i]->step, own[i]->count, own[i]->source_step};
        add_terms(box, own);
        boxes_.push_back(std::move(box));
      }
    }
  }
}

void BlockedConvolution::add_terms(Box& box, const std::array<const AxisClass*, 3>& classes) const {
  const auto& [d, h, w] = classes;
  const std::int64_t plane = product(from_), block = channels_.plain ? 1 : kLanes;
  const std::int64_t weights = channels_.plain || channels_.depthwise ? kLanes : kLanes * kLanes;  // of a tap
  // Columns side by side are one term where their inputs are neighbours in memory.
  const bool join = channels_.plain && g_.dilation_w == 1 && !w->taps.empty();
  box.inputs = !channels_.plain ? kLanes : join ? static_cast<std::int64_t>(w->taps.size()) : 1;
  const std::int64_t outer = channels_.plain ? g_.in_channels : chunk_blocks_;
  const std::int64_t weight_block = backward()        ? channels_.out_blocks * channels_.filter_elements
                                    : channels_.plain ? channels_.taps * kLanes
                                                      : channels_.filter_elements;
  std::size_t part = 0;
  for (std::int64_t b = 0; b < outer; ++b) {
    for (const AxisClass::Tap& td : d->taps) {
      for (const AxisClass::Tap& th : h->taps) {
        for (const AxisClass::Tap& tw : w->taps) {
          if (join && tw != w->taps.front()) break;
          const std::int64_t tap = (td.index * g_.kernel_h + th.index) * g_.kernel_w + tw.index;
          const std::int64_t at = (td.source * from_[1] + th.source) * from_[2] + tw.source;
          for (; tap_parts_ > 1 && tap * tap_parts_ >= static_cast<std::int64_t>(part) * channels_.taps; ++part)
            box.parts.push_back(static_cast<std::int64_t>(box.terms.size()));
          box.terms.push_back({(b * plane + at) * block, b * weight_block + tap * weights});
        }
      }
    }
  }
  if (tap_parts_ == 1) box.parts = {0};
  box.parts.resize(static_cast<std::size_t>(tap_parts_) + 1, static_cast<std::int64_t>(box.terms.size()));
}

void BlockedConvolution::cut_units() {
  const std::int64_t results = product(to_), sources = product(from_);
  const double read =
      channels_.plain ? static_cast<double>(g_.in_channels) / kLanes : static_cast<double>(chunk_blocks_);
  unit_blocks_ = std::min(channels_.out_blocks, kUnitBlocks);
  const double bytes =
      4 * kLanes *
      (read * static_cast<double>(sources) / static_cast<double>(results) + static_cast<double>(unit_blocks_));
  const auto fit = static_cast<std::int64_t>(static_cast<double>(kUnitBytes) / bytes);
  const std::int64_t positions = std::max(kLeastPositions, fit), plane = to_[1] * to_[2];
  cut_ = {std::clamp<std::int64_t>(positions / results, 1, g_.batch),
          std::clamp<std::int64_t>(positions / plane, 1, to_[0]),
          std::clamp<std::int64_t>(positions / to_[2], 1, to_[1]), std::min(to_[2], positions)};
  while (units() < kLeastUnits) {
    if (cut_[0] * cut_[1] * cut_[2] * cut_[3] >= 2 * kLeastPositions) {
      const auto most = std::ranges::find_if(cut_, [](std::int64_t n) { return n > 1; });
      *most = divided_up(*most, 2);
    } else if (unit_blocks_ > 2) {
      unit_blocks_ = divided_up(unit_blocks_ / 2, 2) * 2;
    } else if (cut_[0] > 1) {
      cut_[0] = divided_up(cut_[0], 2);
    } else {
      break;
    }
  }
}

std::int64_t BlockedConvolution::units() const {
  std::int64_t n = channels_.groups * divided_up(channels_.out_blocks, unit_blocks_) * divided_up(g_.batch, cut_[0]);
  for (std::size_t i = 0; i < 3; ++i) n *= divided_up(to_[i], cut_[i + 1]);
  return n;
}

// Blocks of the result count fastest, so that the threads' parts of the source are disjoint.
BlockedConvolution::Unit BlockedConvolution::unit(std::int64_t index) const {
  const auto take = [&](std::int64_t n) {
    const std::int64_t digit = index % n;
    index /= n;
    return digit;
  };
  Unit u{};
  u.block = take(divided_up(channels_.out_blocks, unit_blocks_)) * unit_blocks_;
  u.blocks = std::min(unit_blocks_, channels_.out_blocks - u.block);
  u.group = take(channels_.groups);
  const std::array<std::int64_t, 4> sizes{g_.batch, to_[0], to_[1], to_[2]};
  for (std::size_t i = 4; i-- > 0;) {
    u.begin[i] = take(divided_up(sizes[i], cut_[i])) * cut_[i];
    u.end[i] = std::min(sizes[i], u.begin[i] + cut_[i]);
  }
  return u;
}

std::size_t BlockedConvolution::workspace_bytes() const {  // the biases of whole blocks
  if (backward()) return 0;
  return static_cast<std::size_t>(channels_.groups * channels_.out_blocks * kLanes) * sizeof(float);
}

// The part of a product that does not depend on positions. x and y are those of sample 0.
struct BlockedConvolution::Call {
  BlockedTable::Product product;
  std::int64_t part, blocks, x_sample, y_sample;
  bool first, last;
};

void BlockedConvolution::run(const Arrays& arrays) const {
  Arrays a = arrays;
  if (a.bias != nullptr && g_.out_channels % kLanes != 0) {
    std::fill_n(std::copy_n(a.bias, g_.out_channels, a.workspace), kLanes - g_.out_channels % kLanes, 0.0F);
    a.bias = a.workspace;
  }
  const std::int64_t work = product(to_) * g_.batch * channels_.in_blocks * channels_.out_blocks * channels_.groups *
                            channels_.filter_elements / units();
  parallel_for(units(), work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) run_unit(a, unit(i));
  });
}

void BlockedConvolution::run_unit(const Arrays& a, const Unit& u) const {
  const BlockedChannels& c = channels_;
  const std::int64_t x_plane = product(from_) * (c.plain ? 1 : kLanes), y_plane = product(to_) * kLanes;
  const std::int64_t x_sample = x_plane * (c.plain ? g_.in_channels : c.groups * c.in_blocks);
  const std::int64_t y_sample = y_plane * c.groups * c.out_blocks;
  const std::int64_t group_weights = u.group * c.in_blocks * c.out_blocks * c.filter_elements;
  const std::int64_t w_result = backward() ? c.filter_elements : c.in_blocks * c.filter_elements;
  const std::int64_t w_source = backward() ? c.out_blocks * c.filter_elements : c.filter_elements;
  const std::int64_t chunks = divided_up(c.in_blocks, chunk_blocks_) * tap_parts_;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t source = chunk / tap_parts_ * chunk_blocks_;
    for (std::int64_t block = u.block; block < u.block + u.blocks; block += 2) {
      const std::int64_t to = u.group * c.out_blocks + block;
      Call call{.product = {.rows = 0,
                            .vectors = std::min<std::int64_t>(2, u.block + u.blocks - block),
                            .terms = nullptr,
                            .count = 0,
                            .x = a.x + (u.group * c.in_blocks + source) * x_plane,
                            .x_row = 0,
                            .w = a.w + group_weights + block * w_result + source * w_source,
                            .w_vector = w_result,
                            .y = a.y + to * y_plane,
                            .y_row = 0,
                            .y_vector = y_plane,
                            .add = chunk > 0},
                .part = chunk % tap_parts_,
                .blocks = std::min(chunk_blocks_, c.in_blocks - source),
                .x_sample = x_sample,
                .y_sample = y_sample,
                .first = chunk == 0,
                .last = chunk + 1 == chunks};
      if (call.last) {
        if (a.bias != nullptr) call.product.bias = a.bias + to * kLanes;
        if (a.residual != nullptr) call.product.addend = a.residual + to * y_plane;
        call.product.relu = a.relu;
      }
      for (const Box& box : boxes_) run_box(box, u, call);
    }
  }
}

void BlockedConvolution::run_box(const Box& box, const Unit& u, const Call& call) const {
  const auto part = static_cast<std::size_t>(call.part);
  BlockedTable::Product p = call.product;
  p.terms = box.terms.data() + box.parts[part];
  p.count = (box.parts[part + 1] - box.parts[part]) / chunk_blocks_ * call.blocks;
  p.inputs = box.inputs;
  if (p.count == 0 && !call.first && !call.last) return;
  const std::int64_t x_element = channels_.plain ? 1 : kLanes;
  // Width, height, depth and samples, within the unit.
  std::array<Walk, 4> axes;
  std::int64_t x = u.begin[0] * call.x_sample, y = u.begin[0] * call.y_sample;
  axes[3] = {u.end[0] - u.begin[0], call.x_sample, call.y_sample};
  std::int64_t x_stride = x_element, y_stride = kLanes;
  for (std::size_t i = 3; i-- > 0;) {
    const Box::Axis& axis = box.axes[i];
    const auto index_of = [&](std::int64_t position) {
      return divided_up(std::max<std::int64_t>(0, position - axis.first), axis.step);
    };
    const std::int64_t begin = index_of(u.begin[i + 1]), end = std::min(axis.count, index_of(u.end[i + 1]));
    if (begin >= end) return;
    x += begin * axis.source_step * x_stride;
    y += (axis.first + begin * axis.step) * y_stride;
    axes[2 - i] = {end - begin, axis.source_step * x_stride, axis.step * y_stride};
    x_stride *= from_[i];
    y_stride *= to_[i];
  }
  join_axes(axes);
  const std::size_t along = best_run(axes);
  const auto [rows, x_row, y_row] = axes[along];
  axes[along] = {};
  p.rows = rows;
  p.x_row = x_row;
  p.y_row = y_row;
  const auto run = channels_.depthwise ? kernels_.blocked.depthwise_product : kernels_.blocked.product;
  for_each_walk(axes, [&](std::int64_t x_more, std::int64_t y_more) {
    p.x = call.product.x + x + x_more;
    p.y = call.product.y + y + y_more;
    if (call.product.addend != nullptr) p.addend = call.product.addend + y + y_more;
    run(p);
  });
}

}  // namespace lockstep::kernels::native
