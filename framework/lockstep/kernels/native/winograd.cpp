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
// transformed chunk by chunk, once for each group of kStreamedTiles tiles. Each thread transforms what its items read:
// on two cores with last-level caches of their own, lines that both use cost more than the transforms.
constexpr std::int64_t kStoredBytes = 1 << 21, kStreamedTiles = 64;
// The transformed tiles of a group, in and out, where weights are stored.
constexpr std::int64_t kGroupBytes = 1 << 20, kMostGroupTiles = 56;
// With many threads groups are smaller, down to so many tiles, so that all threads have one, and so that the
// transformed tiles of all threads take no more than kStreamedBytes where weights are streamed.
constexpr std::int64_t kLeastGroupTiles = 14, kStreamedBytes = 1 << 27;

// The convolution that takes dy to dx.
ConvolutionGeometry transposed(const ConvolutionGeometry& g) {
  ConvolutionGeometry t = g;
  t.in_channels = g.out_channels;
  t.in_d = g.out_d();
  t.in_h = g.out_h();
  t.in_w = g.out_w();
  t.out_channels = g.in_channels;
  t.padding_d = g.kernel_d - 1 - g.padding_d;
  t.padding_h = 2 - g.padding_h;
  t.padding_w = 2 - g.padding_w;
  return t;
}

}  // namespace

struct WinogradConvolution::Scratch {
  float *u, *v, *m;
};

// Products of a group of tiles with transformed weights: `outs` blocks of outputs from `out` on, `ins` sources from
// `in` on. Weights of a block of outputs lie u_block elements behind those of the one before.
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
  const std::int64_t block = kLanes * kLanes, bytes = s.planes * s.sources * s.out_blocks * block * 4;
  stored_ = bytes <= kStoredBytes;
  chunk_ = stored_ ? s.out_blocks : std::min<std::int64_t>(2, s.out_blocks);
  const std::int64_t tile_bytes = s.planes * (s.sources + (stored_ ? s.out_blocks : 0)) * kLanes * 4;
  const std::int64_t most = stored_ ? std::min(kGroupBytes / tile_bytes / 14 * 14, kMostGroupTiles)
                                    : std::min(kStreamedBytes / workers_ / tile_bytes, kStreamedTiles);
  tiles_ = even_groups(s.tiles, kLeastGroupTiles, most, stored_ ? workers_ : 1);
  u_plane_ = padded_plane((stored_ ? s.sources : std::min(kChunkBlocks, s.sources)) * chunk_ * block);
  v_plane_ = padded_plane(s.sources * tiles_ * kLanes);
  m_plane_ = padded_plane(chunk_ * tiles_ * kLanes);
  for (std::int64_t c = 0; c < std::min(kChunkBlocks, s.sources); ++c)
    terms_.push_back({c * tiles_ * kLanes, c * block});
}

std::size_t WinogradConvolution::workspace_bytes() const {
  const std::int64_t own = shape_.planes * (u_plane_ + v_plane_ + m_plane_);
  return static_cast<std::size_t>(lane_elements() + workers_ * own) * sizeof(float);
}

WinogradConvolution::Scratch WinogradConvolution::scratch(float* workspace, std::int64_t worker) const {
  const std::int64_t u = shape_.planes * u_plane_, v = shape_.planes * v_plane_, m = shape_.planes * m_plane_;
  float* const own = workspace + lane_elements() + worker * (u + v + m);
  return {own, own + u, own + u + v};
}

void WinogradConvolution::transform_weights(const float* w, std::int64_t out, std::int64_t source, float* u,
                                            std::int64_t plane) const {
  const std::int64_t depth = shape_.g.kernel_d, in = source / depth, slice = source % depth;
  const std::int64_t block =
      turned_ ? (in * shape_.out_blocks + out + 1) * depth - 1 - slice : out * shape_.sources + source;
  shape_.table->weights(w + block * 9 * kLanes * kLanes, turned_, u, plane);
}

// The lanes of a norm lie in the workspace behind the bias.
void WinogradConvolution::transform_input(const Arrays& a, const WinogradTiles& tiles, std::int64_t source,
                                          float* v) const {
  const auto* norm = reinterpret_cast<const NormaliseLanes*>(a.workspace + bias_elements());
  shape_.transform_input(tiles, a.x, source, normalises_ ? norm : nullptr, v + source * tiles_ * kLanes);
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
    const std::int64_t at = (c.out + out) * shape_.out_image();
    const WinogradTable::Output o{.bias = a.bias != nullptr ? a.workspace + (c.out + out) * kLanes : nullptr,
                                  .addend = a.addend != nullptr ? a.addend + at : nullptr,
                                  .relu = a.relu};
    shape_.transform_output(tiles, m + out * tiles_ * kLanes, o, a.y + at);
  }
}

void WinogradConvolution::run(const Arrays& a) const {
  if (shape_.tiles == 0) return;
  if (a.bias != nullptr) {
    std::fill_n(a.workspace, bias_elements(), 0.0F);
    std::copy_n(a.bias, shape_.g.out_channels, a.workspace);
  }
  norm_lanes(a.norm, shape_.g.in_channels, a.workspace + bias_elements());
  const std::int64_t groups = (shape_.tiles + tiles_ - 1) / tiles_;
  const std::int64_t items = stored_ ? groups : groups * out_chunks();
  for_workers(workers_, items, tiles_ * shape_.planes * shape_.sources * chunk_ * kLanes * kLanes,
              [&](std::int64_t worker, Range range) {
                const Scratch own = scratch(a.workspace, worker);
                stored_ ? run_stored(a, range, own) : run_streamed(a, range, own);
              });
}

void WinogradConvolution::run_stored(const Arrays& a, Range groups, const Scratch& own) const {
  const auto& s = shape_;
  for (std::int64_t i = 0; i < s.out_blocks * s.sources; ++i)
    transform_weights(a.w, i / s.sources, i % s.sources, own.u + i * kLanes * kLanes, u_plane_);
  for (std::int64_t group = groups.begin; group < groups.end; ++group)
    run_group(a, group, group + 1 == groups.end, own);
}

void WinogradConvolution::run_group(const Arrays& a, std::int64_t group, bool last, const Scratch& own) const {
  const auto& s = shape_;
  Chunk c{.begin = group * tiles_, .count = std::min(tiles_, s.tiles - group * tiles_)};
  c.outs = s.out_blocks;
  c.ins = s.sources;
  c.u = own.u;
  c.u_block = s.sources * kLanes * kLanes;
  const WinogradTiles in = s.in_tiles(c.begin, c.count, v_plane_);
  for (std::int64_t b = 0; b < s.sources; ++b) transform_input(a, in, b, own.v);
  const std::int64_t next = c.begin + c.count, count = std::min(tiles_, s.tiles - next);
  const std::int64_t calls = s.planes * ((s.out_blocks + 1) / 2) * ((s.sources + kChunkBlocks - 1) / kChunkBlocks);
  if (!last) c.read = {s.in_rows(next, count, a.x), {}, calls};
  c.write = {s.out_rows(c.begin, c.count, s.out_blocks, a.y), {}, calls};
  multiply(c, own.v, own.m);
  transform_output(a, c, own.m);
}

// Items are chunks of outputs, group by group.
void WinogradConvolution::run_streamed(const Arrays& a, Range items, const Scratch& own) const {
  const auto& s = shape_;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const std::int64_t begin = item / out_chunks() * tiles_, chunk = item % out_chunks();
    const Chunk c{.begin = begin, .count = std::min(tiles_, s.tiles - begin)};
    if (chunk == 0 || item == items.begin) {
      const WinogradTiles in = s.in_tiles(begin, c.count, v_plane_);
      for (std::int64_t b = 0; b < s.sources; ++b) transform_input(a, in, b, own.v);
    }
    run_chunk(a, c, chunk, own);
  }
}

void WinogradConvolution::run_chunk(const Arrays& a, const Chunk& tiles, std::int64_t chunk, const Scratch& own) const {
  const auto& s = shape_;
  const std::int64_t block = kLanes * kLanes;
  Chunk c = tiles;
  c.out = chunk * chunk_;
  c.outs = std::min(chunk_, s.out_blocks - c.out);
  c.u = own.u;
  c.u_block = std::min(kChunkBlocks, s.sources) * block;
  for (c.in = 0; c.in < s.sources; c.in += kChunkBlocks) {
    c.ins = std::min(kChunkBlocks, s.sources - c.in);
    for (std::int64_t i = 0; i < c.outs * c.ins; ++i)
      transform_weights(a.w, c.out + i / c.ins, c.in + i % c.ins, own.u + i / c.ins * c.u_block + i % c.ins * block,
                        u_plane_);
    const std::int64_t next = c.in + kChunkBlocks;  // of the weights, not yet transformed
    const std::int64_t out = next < s.sources ? c.out : c.out + chunk_, in = next < s.sources ? next : 0;
    const std::int64_t outs = std::min(chunk_, s.out_blocks - out), ins = std::min(kChunkBlocks, s.sources - in);
    c.read = c.write = {};
    if (outs > 0 && !(turned_ && s.g.kernel_d > 1)) {
      const std::int64_t row = (turned_ ? s.out_blocks : s.sources) * 9 * block;
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
    if (next >= s.sources) c.write = {s.out_rows(c.begin, c.count, c.outs, a.y + c.out * s.out_image()), {}, s.planes};
    multiply(c, own.v, own.m);
  }
  transform_output(a, c, own.m);
}

}  // namespace lockstep::kernels::native
