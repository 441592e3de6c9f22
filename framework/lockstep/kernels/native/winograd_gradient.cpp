#include <omp.h>

#include <algorithm>
#include <type_traits>

#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/memory_ahead.h"
#include "lockstep/kernels/native/winograd.h"
#include "lockstep/kernels/native/winograd_blocks.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kBlock = kLanes * kLanes;
// Tiles of a part, whose products are one sum: few enough for its rounding, so many that adding the parts takes no
// time. From kWideWeights weights of a tap (in volumes, of the taps of one place in all slices) on they are fewer, as a
// whole part is held in transformed form.
constexpr std::int64_t kPartTiles = 256, kWidePartTiles = 128, kWideWeights = 256 * 256;
// Up to this many weights of a tap parts run side by side, and the transformed sums of a chunk of outputs stay in the
// second-level cache; else each thread transforms the tiles of a part once, for all its chunks of weights.
constexpr std::int64_t kWeightsByParts = 128 * 128, kSumBytes = 5 << 18;
constexpr std::int64_t kGroupBytes = 3 << 18, kLeastGroupTiles = 16, kMostGroupTiles = 64;
// Partial sums of weights in memory, each of neighbouring parts: as many as keep the threads of a large machine at
// work.
constexpr std::int64_t kMostSlots = 64;

}  // namespace

struct WinogradGradient::Scratch {
  float *v, *z, *u, *partial;
};

WinogradGradient::WinogradGradient(const ConvolutionGeometry& g, int tile, const NativeKernels& kernels,
                                   bool normalises)
    : kernels_(kernels), shape_(g, tile, kernels), normalises_(normalises), workers_(omp_get_max_threads()) {
  const auto& s = shape_;
  const std::int64_t weights = s.sources * s.out_blocks * kBlock;
  parts_ = std::max<std::int64_t>(1, s.tiles / (weights >= kWideWeights ? kWidePartTiles : kPartTiles));
  slots_ = std::min(parts_, kMostSlots);
  by_parts_ = weights <= kWeightsByParts;
  const std::int64_t part_tiles = (s.tiles + parts_ - 1) / parts_;
  if (by_parts_) {
    const std::int64_t most = kSumBytes / (s.planes * s.sources * kBlock * 4) / 2 * 2;
    const std::int64_t share = (s.out_blocks * slots_ / workers_ + 1) / 2 * 2;  // for as many items as workers
    out_chunk_ = std::min(s.out_blocks, std::max<std::int64_t>(2, std::min(most, share)));
    in_chunk_ = s.sources;
    const std::int64_t tile_bytes = s.planes * (in_chunk_ + out_chunk_) * kLanes * 4;
    tiles_ = even_groups(part_tiles, kLeastGroupTiles, std::min(kGroupBytes / tile_bytes, kMostGroupTiles), 1);
    v_plane_ = padded_plane(in_chunk_ * tiles_ * kLanes);
    z_plane_ = padded_plane(out_chunk_ * tiles_ * kLanes);
  } else {
    out_chunk_ = std::min<std::int64_t>(2, s.out_blocks);
    in_chunk_ = std::min<std::int64_t>(4, s.sources);
    tiles_ = std::max<std::int64_t>(1, part_tiles);
    const std::int64_t most = (out_chunks() * in_chunks() + workers_ - 1) / workers_;  // chunks of one worker
    v_plane_ = padded_plane(std::min(in_chunks(), most) * in_chunk_ * tiles_ * kLanes);
    z_plane_ = padded_plane(out_chunk_ * tiles_ * kLanes);
  }
  u_plane_ = padded_plane(out_chunk_ * in_chunk_ * kBlock);
}

std::int64_t WinogradGradient::dw_elements() const { return shape_.sources * shape_.out_blocks * 9 * kBlock; }

std::int64_t WinogradGradient::partial_elements() const { return by_parts_ ? (slots_ - 1) * dw_elements() : 0; }

std::size_t WinogradGradient::workspace_bytes() const {
  const std::int64_t own = shape_.planes * (v_plane_ + z_plane_ + u_plane_);
  return static_cast<std::size_t>(lane_elements() + partial_elements() + workers_ * own) * sizeof(float);
}

WinogradGradient::Scratch WinogradGradient::scratch(float* workspace, std::int64_t worker) const {
  float* const partial = workspace + lane_elements();
  const std::int64_t v = shape_.planes * v_plane_, z = shape_.planes * z_plane_, u = shape_.planes * u_plane_;
  float* const own = partial + partial_elements() + worker * (v + z + u);
  return {own, own + v, own + v + z, partial};
}

// The lanes of a norm lie at the beginning of the workspace.
template <class T>
void WinogradGradient::transform_input(const ArraysOf<T>& a, const WinogradTiles& tiles, std::int64_t source,
                                       float* v) const {
  const auto* norm = reinterpret_cast<const NormaliseLanes*>(a.workspace);
  shape_.transform_input(tiles, a.x, source, normalises_ ? norm : nullptr, v);
}

template <class T>
void WinogradGradient::run_all(const ArraysOf<T>& a) const {
  norm_lanes(a.norm, shape_.g.in_channels, a.workspace);
  if (shape_.tiles == 0) {
    std::fill_n(a.dw, dw_elements(), 0.0F);
  } else {
    by_parts_ ? run_by_parts(a) : run_by_chunks(a);
  }
  if (a.dbias != nullptr) sum_bias(a);
}

template <class T>
void WinogradGradient::run_by_parts(const ArraysOf<T>& a) const {
  const auto& s = shape_;
  const std::int64_t chunks = out_chunks();
  for_workers(workers_, slots_ * chunks, s.tiles / slots_ * s.planes * in_chunk_ * out_chunk_ * kBlock,
              [&](std::int64_t worker, Range items) {
                const Scratch own = scratch(a.workspace, worker);
                for (std::int64_t item = items.begin; item < items.end; ++item) {
                  const std::int64_t slot = item / chunks;
                  const Range parts = part_of(parts_, slots_, slot);
                  float* const dw = slot == 0 ? a.dw : own.partial + (slot - 1) * dw_elements();
                  for (std::int64_t part = parts.begin; part < parts.end; ++part)
                    run_part(a, part, item % chunks, own, part > parts.begin, dw);
                }
              });
  if (slots_ == 1) return;
  parallel_for(s.sources * s.out_blocks, slots_ * 9 * kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = 1; slot < slots_; ++slot) {
      const float* const partial = scratch(a.workspace, 0).partial + (slot - 1) * dw_elements();
      for (std::int64_t i = begin * 9 * kBlock; i < end * 9 * kBlock; ++i) a.dw[i] += partial[i];
    }
  });
}

// The sums of one part for one chunk of outputs, group of tiles by group of tiles. They are added to dw, or replace it.
template <class T>
void WinogradGradient::run_part(const ArraysOf<T>& a, std::int64_t part, std::int64_t chunk, const Scratch& own,
                                bool add, float* dw) const {
  const auto& s = shape_;
  const Range range = part_of(s.tiles, parts_, part);
  const std::int64_t out = chunk * out_chunk_, outs = std::min(out_chunk_, s.out_blocks - out);
  const T* const dy = a.dy + out * s.out_image();
  const BlockedTable::Term term{0, 0};
  for (std::int64_t begin = range.begin; begin < range.end; begin += tiles_) {
    const std::int64_t count = std::min(tiles_, range.end - begin), next = begin + count;
    const WinogradTiles in = s.in_tiles(begin, count, v_plane_), slopes = s.out_tiles(begin, count, z_plane_);
    for (std::int64_t b = 0; b < s.sources; ++b) transform_input(a, in, b, own.v + b * tiles_ * kLanes);
    for (std::int64_t b = 0; b < outs; ++b)
      s.transform_slopes(slopes, dy + b * s.out_image(), own.z + b * tiles_ * kLanes);
    const std::int64_t following = std::min(tiles_, range.end - next);
    MemoryAhead read;
    if constexpr (std::is_same_v<T, float>) {
      if (following > 0)
        read = {s.in_rows(next, following, a.x), s.out_rows(next, following, outs, dy),
                s.planes * ((outs + 1) / 2) * s.sources};
    }
    for (std::int64_t plane = 0; plane < s.planes; ++plane) {
      for (std::int64_t o = 0; o < outs; o += 2) {
        for (std::int64_t b = 0; b < s.sources; ++b) {
          kernels_.blocked.outer({.positions = count,
                                  .vectors = std::min<std::int64_t>(2, outs - o),
                                  .inputs = kLanes,
                                  .terms = &term,
                                  .count = 1,
                                  .x = own.v + plane * v_plane_ + b * tiles_ * kLanes,
                                  .x_step = kLanes,
                                  .dy = own.z + plane * z_plane_ + o * tiles_ * kLanes,
                                  .dy_vector = tiles_ * kLanes,
                                  .dw = own.u + plane * u_plane_ + (o * s.sources + b) * kBlock,
                                  .dw_vector = s.sources * kBlock,
                                  .add = begin > range.begin,
                                  .read = read.next()});
        }
      }
    }
  }
  dw += out * s.sources * 9 * kBlock;
  for (std::int64_t i = 0; i < outs * s.sources; ++i)
    s.table->gradient(own.u + i * kBlock, u_plane_, add, dw + i * 9 * kBlock);
}

template <class T>
void WinogradGradient::run_by_chunks(const ArraysOf<T>& a) const {
  for_workers(workers_, out_chunks() * in_chunks(), shape_.tiles * shape_.planes * in_chunk_ * out_chunk_ * kBlock,
              [&](std::int64_t worker, Range chunks) {
                for (std::int64_t part = 0; part < parts_; ++part)
                  run_chunks(a, part, chunks, scratch(a.workspace, worker));
              });
}

// A part's sums for chunks of weights, which are numbered by chunk of outputs and chunk of inputs. Transformed slopes
// are those of one chunk of outputs at a time; of the inputs, each chunk that is read is transformed once.
template <class T>
void WinogradGradient::run_chunks(const ArraysOf<T>& a, std::int64_t part, Range chunks, const Scratch& own) const {
  const auto& s = shape_;
  const Range range = part_of(s.tiles, parts_, part);
  const WinogradTiles tiles = s.in_tiles(range.begin, range.size(), v_plane_);
  const WinogradTiles slopes = s.out_tiles(range.begin, range.size(), z_plane_);
  for (std::int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::int64_t out = chunk / in_chunks() * out_chunk_, in = chunk % in_chunks() * in_chunk_;
    if (in == 0 || chunk == chunks.begin) {
      for (std::int64_t o = 0; o < std::min(out_chunk_, s.out_blocks - out); ++o)
        s.transform_slopes(slopes, a.dy + (out + o) * s.out_image(), own.z + o * tiles_ * kLanes);
    }
    const std::int64_t visited = chunk - chunks.begin;
    float* const v = own.v + visited % in_chunks() * in_chunk_ * tiles_ * kLanes;
    if (visited < in_chunks()) {
      for (std::int64_t b = 0; b < std::min(in_chunk_, s.sources - in); ++b)
        transform_input(a, tiles, in + b, v + b * tiles_ * kLanes);
    }
    run_chunk(part, chunk, {v, own.z, own.u, nullptr}, a.dw);
  }
}

// The sums of one part for a chunk of weights, which are transformed back at once. v: of the chunk's inputs alone.
void WinogradGradient::run_chunk(std::int64_t part, std::int64_t chunk, const Scratch& own, float* dw) const {
  const auto& s = shape_;
  const std::int64_t out = chunk / in_chunks() * out_chunk_, in = chunk % in_chunks() * in_chunk_;
  const std::int64_t outs = std::min(out_chunk_, s.out_blocks - out), ins = std::min(in_chunk_, s.sources - in);
  dw += (out * s.sources + in) * 9 * kBlock;
  const std::int64_t lines = ins * 9 * kLanes;
  MemoryAhead write(
      {.base = dw, .outer = outs, .outer_stride = s.sources * 9 * kBlock, .inner = 1, .end = lines, .last_end = lines},
      {}, s.planes * ins);
  const BlockedTable::Term term{0, 0};
  for (std::int64_t plane = 0; plane < s.planes; ++plane) {
    for (std::int64_t b = 0; b < ins; ++b) {
      kernels_.blocked.outer({.positions = part_of(s.tiles, parts_, part).size(),
                              .vectors = outs,
                              .inputs = kLanes,
                              .terms = &term,
                              .count = 1,
                              .x = own.v + plane * v_plane_ + b * tiles_ * kLanes,
                              .x_step = kLanes,
                              .dy = own.z + plane * z_plane_,
                              .dy_vector = tiles_ * kLanes,
                              .dw = own.u + plane * u_plane_ + b * kBlock,
                              .dw_vector = in_chunk_ * kBlock,
                              .write = write.next()});
    }
  }
  for (std::int64_t o = 0; o < outs; ++o) {
    for (std::int64_t b = 0; b < ins; ++b)
      s.table->gradient(own.u + (o * in_chunk_ + b) * kBlock, u_plane_, part > 0,
                        dw + (o * s.sources + b) * 9 * kBlock);
  }
}

template <class T>
void WinogradGradient::sum_bias(const ArraysOf<T>& a) const {
  const auto& s = shape_;
  const std::int64_t positions = s.g.out_d() * s.g.out_h() * s.g.out_w();
  parallel_for(s.out_blocks, s.g.batch * s.out_image(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      double sums[kLanes] = {};
      for (std::int64_t n = 0; n < s.g.batch; ++n) {
        const T* const block = a.dy + (n * s.out_blocks + b) * s.out_image();
        if constexpr (std::is_same_v<T, float>) {
          kernels_.blocked.sum(positions, block, sums);
        } else {
          constexpr std::int64_t kAtOnce = 32;  // as many as BlockedTable::sum adds in f32, so bits are those of f32
          float values[kAtOnce * kLanes];
          for (std::int64_t p = 0; p < positions; p += kAtOnce) {
            const std::int64_t count = std::min(kAtOnce, positions - p);
            kernels_.convert.to_f32(count * kLanes, block + p * kLanes, values);
            kernels_.blocked.sum(count, values, sums);
          }
        }
      }
      const std::int64_t channels = std::min<std::int64_t>(kLanes, s.g.out_channels - b * kLanes);
      for (std::int64_t l = 0; l < channels; ++l) a.dbias[b * kLanes + l] = static_cast<float>(sums[l]);
    }
  });
}

template void WinogradGradient::run_all(const ArraysOf<float>&) const;
template void WinogradGradient::run_all(const ArraysOf<Bf16>&) const;

}  // namespace lockstep::kernels::native
