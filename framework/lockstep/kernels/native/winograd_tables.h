// The transforms of Winograd's convolutions F(2x2, 3x3) and F(4x4, 3x3) on blocks of 16 channels; part of tables.h, and
// data only like it. Lanes are channels, multiply-adds are fused: bits do not depend on the level. levels/winograd.h
// has the formulas.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

// `count` tiles of one block of channels, from tile `begin` on, numbered by sample, row and column of tiles. The output
// is cut into tiles of size x size (2 or 4); a tile of the input is two wider and higher and overlaps its neighbours.
// A transformed tile has planes * planes numbers per channel with planes = size + 2; those of tile begin + t lie at
// t * 16 of each plane, and planes are `plane` elements apart.
struct WinogradTiles {
  std::int64_t height, width;  // of the image, in positions of 16 channels
  std::int64_t sample;         // elements from one sample to the next
  std::int64_t rows, columns;  // of tiles in a sample
  std::int64_t padding_h, padding_w;
  std::int64_t begin, count;
  std::int64_t plane;
};

struct NormaliseLanes;       // of tables.h
using Bf16 = std::uint16_t;  // see tables.h

struct WinogradTable {
  struct Output {
    const float* bias;    // [16], or null
    const float* addend;  // like y, or null
    bool relu;
  };
  // v = the transformed tiles of the image x, which is 0 outside. With `norm`: of relu((x - mean) * scale + shift).
  // Transformed numbers are f32, also those of bf16.
  void (*input)(const WinogradTiles&, const float* x, const NormaliseLanes* norm, float* v);
  void (*input_bf16)(const WinogradTiles&, const Bf16* x, float* v);
  // y = [relu](the tiles of products m, transformed back, + bias + addend), as far as they lie in the image.
  void (*output)(const WinogradTiles&, const float* m, const Output&, float* y);
  // z = the transformed tiles of the output's gradient dy, for the gradient by the weights; without overlap or padding.
  void (*slopes)(const WinogradTiles&, const float* dy, float* z);
  void (*slopes_bf16)(const WinogradTiles&, const Bf16* dy, float* z);
  // u = 16 x 16 weights w [3][3][16 in][16 out], transformed; blocks of a plane are [16 in][16 out]. Turned: for the
  // gradient by the input, with the taps turned by 180 degrees and blocks of [16 out][16 in].
  void (*weights)(const float* w, bool turned, float* u, std::int64_t plane);
  // dw [3][3][16][16] = the gradient by transformed weights u, transformed back, added to dw if `add`.
  void (*gradient)(const float* u, std::int64_t plane, bool add, float* dw);
};

}  // namespace lockstep::kernels::native
