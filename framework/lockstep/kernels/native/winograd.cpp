#include "lockstep/kernels/native/winograd.h"

#include <omp.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/memory_ahead.h"
#include "lockstep/kernels/native/winograd_blocks.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kChunkBlocks = kWinogradChunk / kLanes;
// Transformed weights up to this size are kept for all tiles (those of 64 x 128 channels, not of 128 x 128). Others are
// transformed chunk by chunk, once for each group of kStreamedTiles tiles.
constexpr std::int64_t kStoredBytes = 1 << 21, kStreamedTiles = 64;
// The transformed tiles of a group, in and out, where weights are stored.
constexpr std::int64_t kGroupBytes = 1 << 20, kMostGroupTiles = 56;

// The convolution that takes dy to dx.
ConvolutionGeometry transposed(const ConvolutionGeometry& g) {
  ConvolutionGeometry t = g;
  t.in_channels = g.out_channels;
  t.in_h = g.out_h();
  t.in_w = g.out_w();
  t.out_channels = g.in_channels;
  t.padding_h = 2 - g.padding_h;
  t.padding_w = 2 - g.padding_w;
  return t;
}

}  // namespace

bool supports_winograd(const ConvolutionGeometry& g) {
  return g.is_planar() && g.groups == 1 && g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
         g.dilation_h == 1 && g.dilation_w == 1 && g.padding_h <= 2 && g.padding_w <= 2 && g.out_h() > 0 &&
         g.out_w() > 0;
}

Layout winograd_weight_layout(const Shape& weight) {
  const std::int64_t out = round_to_block(weight[0]), in = round_to_block(weight[1]), tap = kLanes * kLanes;
  return {.padded = {out, in, 3, 3},
          .strides = {in / kLanes * 9 * tap, 9 * tap, 3 * tap, tap},
          .blocks = {{1, kLanes}, {0, kLanes}}};
}

WinogradShape::WinogradShape(const ConvolutionGeometry& geometry, int tile, const NativeKernels& kernels)
    : g(geometry), table(tile == 2 ? &kernels.winograd2 : &kernels.winograd4), size(tile) {
  check(supports_winograd(g) && (tile == 2 || tile == 4), "convolution",
        "a {}x{} kernel with padding {}, {} on a {}x{} image in tiles of {} is none that Winograd's transforms compute",
        g.kernel_h, g.kernel_w, g.padding_h, g.padding_w, g.in_h, g.in_w, tile);
  planes = (size + 2) * (size + 2);
  in_blocks = round_to_block(g.in_channels) / kLanes;
  out_blocks = round_to_block(g.out_channels) / kLanes;
  rows = (g.out_h() + size - 1) / size;
  columns = (g.out_w() + size - 1) / size;
  tiles = g.batch * rows * columns;
}

WinogradTiles WinogradShape::in_tiles(std::int64_t begin, std::int64_t count, std::int64_t plane) const {
  return {.height = g.in_h,
          .width = g.in_w,
          .sample = in_blocks * in_plane(),
          .rows = rows,
          .columns = columns,
          .padding_h = g.padding_h,
          .padding_w = g.padding_w,
          .begin = begin,
          .count = count,
          .plane = plane};
}

WinogradTiles WinogradShape::out_tiles(std::int64_t begin, std::int64_t count, std::int64_t plane) const {
  return {.height = g.out_h(),
          .width = g.out_w(),
          .sample = out_blocks * out_plane(),
          .rows = rows,
          .columns = columns,
          .padding_h = 0,
          .padding_w = 0,
          .begin = begin,
          .count = count,
          .plane = plane};
}

struct WinogradConvolution::Scratch {
  float *u, *v, *m;
};

// Products of a group of tiles with transformed weights: `outs` blocks of outputs from `out` on, `ins` blocks of inputs
// from `in` on. Weights of a block of outputs lie u_block elements behind those of the one before.
struct WinogradConvolution::Chunk {
  std::int64_t begin, count;  // tiles
  std::int64_t out = 0, outs = 0, in = 0, ins = 0;
  const float* u = nullptr;
  std::int64_t u_block = 0;
  MemoryAhead read = {}, write = {};
};

WinogradConvolution::WinogradConvolution(const ConvolutionGeometry& g, Direction direction, int tile,
                                         const NativeKernels& kernels, bool normalises)
    : kernels_(kernels),
      shape_(direction == Direction::Forward || !supports_winograd(g) ? g : transposed(g), tile, kernels),
      normalises_(normalises),
      turned_(direction == Direction::BackwardData),
      workers_(omp_get_max_threads()) {
  const auto& s = shape_;
  const std::int64_t block = kLanes * kLanes, bytes = s.planes * s.in_blocks * s.out_blocks * block * 4;
  stored_ = bytes <= kStoredBytes;
  chunk_ = stored_ ? s.out_blocks : std::min<std::int64_t>(2, s.out_blocks);
  std::int64_t most = kStreamedTiles;
  if (stored_) {
    const std::int64_t tile_bytes = s.planes * (s.in_blocks + s.out_blocks) * kLanes * 4;
    most = std::clamp<std::int64_t>(kGroupBytes / tile_bytes / 14 * 14, 14, kMostGroupTiles);
  }
  tiles_ = even_groups(s.tiles, most, stored_ ? workers_ : 1);
  u_plane_ = padded_plane((stored_ ? s.in_blocks : std::min(kChunkBlocks, s.in_blocks)) * chunk_ * block);
  v_plane_ = padded_plane(s.in_blocks * tiles_ * kLanes);
  m_plane_ = padded_plane(chunk_ * tiles_ * kLanes);
  for (std::int64_t c = 0; c < std::min(kChunkBlocks, s.in_blocks); ++c)
    terms_.push_back({c * tiles_ * kLanes, c * block});
}

std::size_t WinogradConvolution::workspace_bytes() const {
  const std::int64_t planes =
      stored_ ? u_plane_ + workers_ * (v_plane_ + m_plane_) : v_plane_ + workers_ * (u_plane_ + m_plane_);
  return static_cast<std::size_t>(lane_elements() + shape_.planes * planes) * sizeof(float);
}

WinogradConvolution::Scratch WinogradConvolution::scratch(float* workspace, std::int64_t worker) const {
  float* const common = workspace + lane_elements();
  const std::int64_t shared = stored_ ? u_plane_ : v_plane_, own = stored_ ? v_plane_ : u_plane_;
  float* const mine = common + shape_.planes * (shared + worker * (own + m_plane_));
  return {stored_ ? common : mine, stored_ ? mine : common, mine + shape_.planes * own};
}

void WinogradConvolution::transform_weights(const float* w, std::int64_t out, std::int64_t in, float* u,
                                            std::int64_t plane) const {
  const std::int64_t block = turned_ ? in * shape_.out_blocks + out : out * shape_.in_blocks + in;
  shape_.table->weights(w + block * 9 * kLanes * kLanes, turned_, u, plane);
}

// The lanes of a norm lie in the workspace behind the bias.
void WinogradConvolution::transform_input(const Arrays& a, const WinogradTiles& tiles, std::int64_t block,
                                          float* v) const {
  const auto* norm = reinterpret_cast<const NormaliseLanes*>(a.workspace + bias_elements());
  shape_.table->input(tiles, a.x + block * shape_.in_plane(), normalises_ ? norm + block : nullptr,
                      v + block * tiles_ * kLanes);
}

// m [planes][outs][tiles_][16] = or += v times the chunk's weights; further chunks of inputs are added as whole sums.
void WinogradConvolution::multiply(const Chunk& chunk, const float* v, float* m) const {
  Chunk c = chunk;
  const std::int64_t vector = tiles_ * kLanes;
  for (std::int64_t plane = 0; plane < shape_.planes; ++plane) {
    for (std::int64_t in = 0; in < c.ins; in += kChunkBlocks) {
      for (std::int64_t out = 0; out < c.outs; out += 2) {
        float* const y = m + plane * m_plane_ + out * vector;
        kernels_.blocked.product({.rows = c.count,
                                  .vectors = std::min<std::int64_t>(2, c.outs - out),
                                  .terms = terms_.data(),
                                  .count = std::min(kChunkBlocks, c.ins - in),
                                  .x = v + plane * v_plane_ + (c.in + in) * vector,
                                  .x_row = kLanes,
                                  .w = c.u + plane * u_plane_ + out * c.u_block + in * kLanes * kLanes,
                                  .w_vector = c.u_block,
                                  .y = y,
                                  .y_row = kLanes,
                                  .y_vector = vector,
                                  .addend = c.in + in > 0 ? y : nullptr,
                                  .read = c.read.next(),
                                  .write = c.write.next()});
      }
    }
  }
}

void WinogradConvolution::transform_output(const Arrays& a, const Chunk& c, const float* m) const {
  const WinogradTiles tiles = shape_.out_tiles(c.begin, c.count, m_plane_);
  for (std::int64_t out = 0; out < c.outs; ++out) {
    const std::int64_t at = (c.out + out) * shape_.out_plane();
    const WinogradTable::Output o{.bias = a.bias != nullptr ? a.workspace + (c.out + out) * kLanes : nullptr,
                                  .addend = a.addend != nullptr ? a.addend + at : nullptr,
                                  .relu = a.relu};
    shape_.table->output(tiles, m + out * tiles_ * kLanes, o, a.y + at);
  }
}

void WinogradConvolution::run(const Arrays& a) const {
  if (shape_.tiles == 0) return;
  if (a.bias != nullptr) {
    std::fill_n(a.workspace, bias_elements(), 0.0F);
    std::copy_n(a.bias, shape_.g.out_channels, a.workspace);
  }
  norm_lanes(a.norm, shape_.g.in_channels, a.workspace + bias_elements());
  stored_ ? run_stored(a) : run_streamed(a);
}

void WinogradConvolution::run_stored(const Arrays& a) const {
  const auto& s = shape_;
  const std::int64_t block = kLanes * kLanes;
  parallel_for(s.out_blocks, s.in_blocks * s.planes * block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * s.in_blocks; i < end * s.in_blocks; ++i)
      transform_weights(a.w, i / s.in_blocks, i % s.in_blocks, scratch(a.workspace, 0).u + i * block, u_plane_);
  });
  const std::int64_t groups = (s.tiles + tiles_ - 1) / tiles_;
  for_workers(workers_, groups, tiles_ * s.planes * s.in_blocks * s.out_blocks * block,
              [&](std::int64_t worker, std::int64_t group) { run_block(a, group, scratch(a.workspace, worker)); });
}

void WinogradConvolution::run_block(const Arrays& a, std::int64_t group, const Scratch& scratch) const {
  const auto& s = shape_;
  Chunk c{.begin = group * tiles_, .count = std::min(tiles_, s.tiles - group * tiles_)};
  c.outs = s.out_blocks;
  c.ins = s.in_blocks;
  c.u = scratch.u;
  c.u_block = s.in_blocks * kLanes * kLanes;
  const WinogradTiles in = s.in_tiles(c.begin, c.count, v_plane_);
  for (std::int64_t b = 0; b < s.in_blocks; ++b) transform_input(a, in, b, scratch.v);
  const std::int64_t next = c.begin + c.count, count = std::min(tiles_, s.tiles - next);
  const std::int64_t calls = s.planes * ((s.out_blocks + 1) / 2) * ((s.in_blocks + kChunkBlocks - 1) / kChunkBlocks);
  if (count > 0) c.read = {rows_of(s.in_tiles(next, count, 0), s.size, 2, s.in_blocks, a.x), {}, calls};
  c.write = {rows_of(s.out_tiles(c.begin, c.count, 0), s.size, 0, s.out_blocks, a.y), {}, calls};
  multiply(c, scratch.v, scratch.m);
  transform_output(a, c, scratch.m);
}

void WinogradConvolution::run_streamed(const Arrays& a) const {
  const auto& s = shape_;
  float* const v = scratch(a.workspace, 0).v;
  const std::int64_t chunks = (s.out_blocks + chunk_ - 1) / chunk_;
  for (std::int64_t begin = 0; begin < s.tiles; begin += tiles_) {
    const Chunk c{.begin = begin, .count = std::min(tiles_, s.tiles - begin)};
    const WinogradTiles in = s.in_tiles(begin, c.count, v_plane_);
    parallel_for(s.in_blocks, c.count * s.planes * kLanes, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) transform_input(a, in, b, v);
    });
    for_workers(workers_, chunks, c.count * s.planes * s.in_blocks * chunk_ * kLanes * kLanes,
                [&](std::int64_t worker, std::int64_t chunk) { run_chunk(a, c, chunk, scratch(a.workspace, worker)); });
  }
}

void WinogradConvolution::run_chunk(const Arrays& a, const Chunk& tiles, std::int64_t chunk,
                                    const Scratch& scratch) const {
  const auto& s = shape_;
  const std::int64_t block = kLanes * kLanes;
  Chunk c = tiles;
  c.out = chunk * chunk_;
  c.outs = std::min(chunk_, s.out_blocks - c.out);
  c.u = scratch.u;
  c.u_block = std::min(kChunkBlocks, s.in_blocks) * block;
  for (c.in = 0; c.in < s.in_blocks; c.in += kChunkBlocks) {
    c.ins = std::min(kChunkBlocks, s.in_blocks - c.in);
    for (std::int64_t i = 0; i < c.outs * c.ins; ++i)
      transform_weights(a.w, c.out + i / c.ins, c.in + i % c.ins, scratch.u + i / c.ins * c.u_block + i % c.ins * block,
                        u_plane_);
    const std::int64_t next = c.in + kChunkBlocks;  // of the weights, not yet transformed
    const std::int64_t out = next < s.in_blocks ? c.out : c.out + chunk_, in = next < s.in_blocks ? next : 0;
    const std::int64_t outs = std::min(chunk_, s.out_blocks - out), ins = std::min(kChunkBlocks, s.in_blocks - in);
    c.read = c.write = {};
    if (outs > 0) {
      const std::int64_t row = (turned_ ? s.out_blocks : s.in_blocks) * 9 * block;
      const std::int64_t first = turned_ ? in : out, column = turned_ ? out : in;
      const std::int64_t lines = (turned_ ? outs : ins) * 9 * kLanes;
      c.read = {{.base = a.w + first * row + column * 9 * block,
                 .outer = turned_ ? ins : outs,
                 .outer_stride = row,
                 .inner = 1,
                 .end = lines,
                 .last_end = lines},
                {},
                s.planes};
    }
    if (next >= s.in_blocks)
      c.write = {
          rows_of(s.out_tiles(c.begin, c.count, 0), s.size, 0, c.outs, a.y + c.out * s.out_plane()), {}, s.planes};
    multiply(c, scratch.v, scratch.m);
  }
  transform_output(a, c, scratch.m);
}

}  // namespace lockstep::kernels::native
