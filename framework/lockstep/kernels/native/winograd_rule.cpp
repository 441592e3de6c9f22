#include <algorithm>

#include "lockstep/kernels/native/winograd.h"

namespace lockstep::kernels::native {
namespace {

// The best time of oneDNN 2.6 (direct or Winograd) as a multiple of that of our F(4x4, 3x3): one core of a Xeon of
// family Sapphire Rapids with AVX-512 on both sides, least of several runs in alternation, transforms of weights
// included, for forward, backward data and backward weights, and the sum of all three; "tiles" of the whole batch:
//   64 -> 64, 32^2, 2048 tiles       1.19 1.24 1.11 | 1.18
//   128 -> 128, 16^2, 512 tiles      1.09 1.07 1.11 | 1.09
//   256 -> 256, 8^2, 128 tiles       1.23 1.25 1.06 | 1.18
//   512 -> 512, 4^2, 32 tiles        1.83 1.51 3.26 | 2.21
//   16 -> 16, 32^2, 4096 tiles       1.42 1.34 1.10 | 1.28
//   32 -> 32, 16^2, 1024 tiles       1.56 1.51 1.30 | 1.45
//   64 -> 64, 8^2, 256 tiles         1.36 1.38 1.33 | 1.36
//   64 -> 64, 56^2, 1568 tiles       1.24 1.20 1.05 | 1.16
//   128 -> 128, 28^2, 392 tiles      1.03 1.00 1.23 | 1.08
//   256 -> 256, 14^2, 128 tiles      1.32 1.37 1.06 | 1.24
//   512 -> 512, 7^2, 32 tiles        1.46 1.59 2.28 | 1.77
//   24 -> 24, 32^2, 1024 tiles       1.59 1.62 1.31 | 1.50
//   16 -> 32, 32^2, 2048 tiles       1.35 1.65 1.08 | 1.36
//   32 -> 16, 32^2, 2048 tiles       1.75 1.54 1.18 | 1.49
//   64 -> 64, 8^2, 16 tiles          1.71 1.63 1.54 | 1.62
//   128 -> 128, 16^2, 16 tiles       1.39 1.37 1.49 | 1.41
//   256 -> 256, 8^2, 16 tiles        1.93 1.82 2.37 | 2.04
//   512 -> 512, 7^2, 16 tiles        1.40 1.38 2.17 | 1.66
//   16 -> 16, 8^2, 8 tiles           0.83 0.87 0.83 | 0.84   too few tiles for the transforms of the weights
//   64 -> 64, 8^2, 4 tiles           0.94 0.89 0.62 | 0.78
//   256 -> 256, 8^2, 4 tiles         0.94 0.87 0.95 | 0.92
//   512 -> 512, 7^2, 4 tiles         0.75 0.64 1.02 | 0.81
//   64 -> 64, 3^2, 32 tiles          1.20 0.87 1.29 | 1.13   the images fill 56% of their tiles
//   64 -> 64, 5^2, 128 tiles         0.90 0.77 0.95 | 0.88   39%
constexpr std::int64_t kLeastChannels = 16, kLeastTiles = 16;

}  // namespace

int winograd_tile(const ConvolutionGeometry& g, KernelOptions::ConvMath math) {
  if (math == KernelOptions::ConvMath::Exact || native_level() == "baseline" || !supports_winograd(g)) return 0;
  if (std::min(g.in_channels, g.out_channels) < kLeastChannels) return 0;
  const std::int64_t tile = math == KernelOptions::ConvMath::Fast ? 4 : 2;
  const std::int64_t tiles = g.batch * ((g.out_h() + tile - 1) / tile) * ((g.out_w() + tile - 1) / tile);
  const bool filled = 2 * g.batch * g.out_h() * g.out_w() >= tiles * tile * tile;
  return tiles >= kLeastTiles && filled ? static_cast<int>(tile) : 0;
}

}  // namespace lockstep::kernels::native
