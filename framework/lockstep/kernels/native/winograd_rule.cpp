#include <algorithm>

#include "lockstep/kernels/native/winograd.h"

namespace lockstep::kernels::native {
namespace {

// The best time of oneDNN 2.6 (direct or Winograd) as a multiple of that of our F(4x4, 3x3): one core of a Xeon
// with AVX-512 (AMX, 2 MiB of second-level cache), AVX-512 on both sides, least of several runs in alternation,
// transforms of weights included, for forward, backward data and backward weights, and the sum of all three; "tiles" of
// the whole batch:
//   64 -> 64, 32^2, 2048 tiles       1.36 1.32 1.27 | 1.32
//   128 -> 128, 16^2, 512 tiles      1.16 1.16 1.23 | 1.19
//   256 -> 256, 8^2, 128 tiles       1.50 1.53 1.22 | 1.42
//   512 -> 512, 4^2, 32 tiles        1.87 1.55 3.56 | 2.32
//   16 -> 16, 32^2, 4096 tiles       1.49 1.36 1.39 | 1.41
//   32 -> 32, 16^2, 1024 tiles       1.83 1.88 1.64 | 1.78
//   64 -> 64, 8^2, 256 tiles         1.61 1.65 1.53 | 1.60
//   64 -> 64, 56^2, 1568 tiles       1.39 1.36 1.16 | 1.30
//   128 -> 128, 28^2, 392 tiles      1.19 1.13 1.36 | 1.23
//   256 -> 256, 14^2, 128 tiles      1.42 1.35 1.20 | 1.32
//   512 -> 512, 7^2, 32 tiles        1.44 1.45 2.40 | 1.75
//   24 -> 24, 32^2, 1024 tiles       1.91 1.91 1.60 | 1.81
//   16 -> 32, 32^2, 2048 tiles       1.35 1.65 1.08 | 1.36
//   32 -> 16, 32^2, 2048 tiles       1.75 1.54 1.18 | 1.49
//   64 -> 64, 8^2, 16 tiles          1.88 1.79 1.56 | 1.72
//   128 -> 128, 16^2, 16 tiles       1.38 1.30 1.36 | 1.35
//   256 -> 256, 8^2, 16 tiles        1.77 1.73 2.50 | 1.98
//   512 -> 512, 7^2, 16 tiles        1.23 1.26 2.07 | 1.53
//   16 -> 16, 8^2, 8 tiles           0.97 0.91 0.95 | 0.94   too few tiles for the transforms of the weights
//   64 -> 64, 8^2, 4 tiles           0.98 0.93 0.62 | 0.79
//   256 -> 256, 8^2, 4 tiles         0.89 0.79 0.96 | 0.88
//   512 -> 512, 7^2, 4 tiles         0.76 0.63 0.93 | 0.78
//   64 -> 64, 3^2, 32 tiles          1.20 0.87 1.29 | 1.13   the images fill 56% of their tiles
//   64 -> 64, 5^2, 128 tiles         0.90 0.77 0.95 | 0.88   39%
// With AVX2 on both sides (oneDNN has no Winograd kernels there): 64 -> 64, 32^2 2.15, 16 -> 16, 32^2 1.44, 128 -> 128,
// 16^2 2.11, 512 -> 512, 7^2 1.95. Our F(2x2, 3x3) against oneDNN's direct kernels with AVX-512, forward, backward
// data, backward weights: 64 -> 64, 32^2 1.63 2.01 1.47, 16 -> 16, 32^2 1.16 1.07 0.92, 256 -> 256, 8^2 1.45 1.42 1.73,
// 512 -> 512, 7^2 1.01 0.96 1.56. The baseline, whose fused multiply-adds are
// emulated, is offered with portable bits alone.
constexpr std::int64_t kLeastChannels = 16, kLeastTiles = 16;

}  // namespace

int winograd_tile(const ConvolutionGeometry& g, const KernelOptions& options) {
  const KernelOptions::ConvMath math = options.conv_math;
  if (math == KernelOptions::ConvMath::Exact || !supports_winograd(g)) return 0;
  // With portable bits the rule is the same at every level, though multiply-adds are emulated there.
  if (!native_fused() && options.bits != KernelOptions::Bits::Portable) return 0;
  if (std::min(g.in_channels, g.out_channels) < kLeastChannels) return 0;
  const std::int64_t tile = math == KernelOptions::ConvMath::Fast ? 4 : 2;
  // Slices of the kernel that fall beyond the volume are worked out as zeros.
  std::int64_t inside = 0;
  for (std::int64_t i = 0; i < g.out_d() * g.kernel_d; ++i) {
    const std::int64_t depth = i / g.kernel_d + i % g.kernel_d - g.padding_d;
    inside += depth >= 0 && depth < g.in_d ? 1 : 0;
  }
  const std::int64_t slices = g.batch * g.out_d();
  const std::int64_t tiles = slices * ((g.out_h() + tile - 1) / tile) * ((g.out_w() + tile - 1) / tile);
  const bool filled = 2 * g.batch * g.out_h() * g.out_w() * inside >= tiles * tile * tile * g.kernel_d;
  return tiles >= kLeastTiles && filled ? static_cast<int>(tile) : 0;
}

}  // namespace lockstep::kernels::native
