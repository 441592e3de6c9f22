#include <algorithm>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/winograd.h"
#include "lockstep/kernels/native/winograd_blocks.h"

namespace lockstep::kernels::native {
namespace {

// Calls body(part, sample, slice, at) for the parts of `tiles` that lie in one slice, numbered from its first tile, of
// which `at` is the number of tiles before. Images are one part, which begins at sample 0.
template <class Body>
void for_slices(const ConvolutionGeometry& g, const WinogradTiles& tiles, const Body& body) {
  if (g.is_planar()) return body(tiles, 0, 0, 0);
  const std::int64_t slice_tiles = tiles.rows * tiles.columns, depth = g.out_d();
  WinogradTiles part = tiles;
  for (std::int64_t at = 0; at < tiles.count; at += part.count) {
    const std::int64_t slice = (tiles.begin + at) / slice_tiles;
    part.begin = (tiles.begin + at) % slice_tiles;
    part.count = std::min(tiles.count - at, slice_tiles - part.begin);
    body(part, slice / depth, slice % depth, at);
  }
}

// The rows of an image's blocks that tiles read or write; `overlap` rows more than their own.
MemoryRegion rows_of(const WinogradTiles& t, std::int64_t size, std::int64_t overlap, std::int64_t blocks,
                     const float* x) {
  const std::int64_t first = t.begin / t.columns, last = (t.begin + t.count - 1) / t.columns;  // rows of tiles
  const std::int64_t sample = first / t.rows, samples = last / t.rows - sample + 1;
  return {.base = x + sample * t.sample,
          .outer = samples,
          .outer_stride = t.sample,
          .inner = blocks,
          .inner_stride = t.height * t.width * kLanes,
          .skip = std::min(t.height, first % t.rows * size) * t.width,
          .end = t.height * t.width,
          .last_end = std::min(t.height, (last % t.rows + 1) * size + overlap) * t.width};
}

}  // namespace

bool supports_winograd(const ConvolutionGeometry& g) {
  const bool depth = g.is_planar() || (g.kernel_d >= 1 && g.kernel_d <= 3 && g.stride_d == 1 && g.dilation_d == 1 &&
                                       g.padding_d >= 0 && g.padding_d < g.kernel_d && g.out_d() > 0);
  return depth && g.groups == 1 && g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
         g.dilation_h == 1 && g.dilation_w == 1 && g.padding_h <= 2 && g.padding_w <= 2 && g.out_h() > 0 &&
         g.out_w() > 0;
}

Layout winograd_weight_layout(const Shape& weight) {
  const std::int64_t out = round_to_block(weight[0]), in = round_to_block(weight[1]), tap = kLanes * kLanes;
  Layout layout{.padded = {out, in, 3, 3}, .strides = {0, 0, 3 * tap, tap}, .blocks = {{1, kLanes}, {0, kLanes}}};
  const std::int64_t depth = weight.rank() == 5 ? weight[2] : 1;
  if (weight.rank() == 5) {
    layout.padded.insert(layout.padded.begin() + 2, depth);
    layout.strides.insert(layout.strides.begin() + 2, 9 * tap);
  }
  layout.strides[1] = depth * 9 * tap;
  layout.strides[0] = in / kLanes * layout.strides[1];
  return layout;
}

WinogradShape::WinogradShape(const ConvolutionGeometry& geometry, int tile, const NativeKernels& kernels)
    : g(geometry), table(tile == 2 ? &kernels.winograd2 : &kernels.winograd4), size(tile) {
  check(
      supports_winograd(g) && (tile == 2 || tile == 4), "convolution",
      "a {}x{}x{} kernel with padding {}, {}, {} on a {}x{}x{} image in tiles of {} is none that Winograd's transforms "
      "compute",
      g.kernel_d, g.kernel_h, g.kernel_w, g.padding_d, g.padding_h, g.padding_w, g.in_d, g.in_h, g.in_w, tile);
  planes = (size + 2) * (size + 2);
  in_blocks = round_to_block(g.in_channels) / kLanes;
  out_blocks = round_to_block(g.out_channels) / kLanes;
  rows = (g.out_h() + size - 1) / size;
  columns = (g.out_w() + size - 1) / size;
  sources = in_blocks * g.kernel_d;
  tiles = g.batch * g.out_d() * rows * columns;
}

WinogradTiles WinogradShape::in_tiles(std::int64_t begin, std::int64_t count, std::int64_t plane) const {
  return {.height = g.in_h,
          .width = g.in_w,
          .sample = in_blocks * in_image(),
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
          .sample = out_blocks * out_image(),
          .rows = rows,
          .columns = columns,
          .padding_h = 0,
          .padding_w = 0,
          .begin = begin,
          .count = count,
          .plane = plane};
}

MemoryRegion WinogradShape::in_rows(std::int64_t begin, std::int64_t count, const float* x) const {
  return g.is_planar() ? rows_of(in_tiles(begin, count, 0), size, 2, in_blocks, x) : MemoryRegion{};
}

MemoryRegion WinogradShape::out_rows(std::int64_t begin, std::int64_t count, std::int64_t blocks,
                                     const float* y) const {
  return g.is_planar() ? rows_of(out_tiles(begin, count, 0), size, 0, blocks, y) : MemoryRegion{};
}

template <class T>
void WinogradShape::transform_input(const WinogradTiles& tiles_of, const T* x, std::int64_t source,
                                    const NormaliseLanes* norm, float* v) const {
  const std::int64_t block = source / g.kernel_d, tap = source % g.kernel_d;
  const T* const image = x + block * in_image();
  if (norm != nullptr) norm += block;
  for_slices(g, tiles_of, [&](const WinogradTiles& part, std::int64_t sample, std::int64_t slice, std::int64_t at) {
    const std::int64_t depth = slice + tap - g.padding_d;
    float* const to = v + at * kLanes;
    if (depth >= 0 && depth < g.in_d) {
      const T* const from = image + sample * part.sample + depth * g.in_h * g.in_w * kLanes;
      if constexpr (std::is_same_v<T, float>) {
        table->input(part, from, norm, to);
      } else {
        table->input_bf16(part, from, to);
      }
    } else {
      for (std::int64_t p = 0; p < planes; ++p) std::fill_n(to + p * part.plane, part.count * kLanes, 0.0F);
    }
  });
}

void WinogradShape::transform_output(const WinogradTiles& tiles_of, const float* m, const WinogradTable::Output& o,
                                     float* y) const {
  for_slices(g, tiles_of, [&](const WinogradTiles& part, std::int64_t sample, std::int64_t slice, std::int64_t at) {
    const std::int64_t offset = sample * part.sample + slice * g.out_h() * g.out_w() * kLanes;
    WinogradTable::Output own = o;
    if (o.addend != nullptr) own.addend += offset;
    table->output(part, m + at * kLanes, own, y + offset);
  });
}

template <class T>
void WinogradShape::transform_slopes(const WinogradTiles& tiles_of, const T* dy, float* z) const {
  for_slices(g, tiles_of, [&](const WinogradTiles& part, std::int64_t sample, std::int64_t slice, std::int64_t at) {
    const T* const from = dy + sample * part.sample + slice * g.out_h() * g.out_w() * kLanes;
    if constexpr (std::is_same_v<T, float>) {
      table->slopes(part, from, z + at * kLanes);
    } else {
      table->slopes_bf16(part, from, z + at * kLanes);
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                     \
  template void WinogradShape::transform_input(const WinogradTiles&, const T*, std::int64_t, const NormaliseLanes*, \
                                               float*) const;                                                       \
  template void WinogradShape::transform_slopes(const WinogradTiles&, const T*, float*) const;
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
