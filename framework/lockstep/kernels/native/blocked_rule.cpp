#include <algorithm>

#include "lockstep/kernels/native/blocked_convolution.h"

namespace lockstep::kernels::native {

// oneDNN 2.6's time (direct, AVX-512) as a multiple of these kernels': forward, backward data, backward weights. One
// thread of a Xeon with AVX-512 whose cores others shared; a range is that of two or three runs, and other figures are
// of one run. The width of the ranges is that of the machine's disturbance. Batch 8; 32 for 64 -> 128 and below it:
//   1x1       64 -> 64, 56^2      1.0      1.0      1.0
//             256 -> 64, 56^2     0.9      1.0      0.9
//             128 -> 512, 28^2    0.9      0.9      0.9
//             256 -> 1024, 14^2   0.6-1.0  0.9-1.5  0.5-1.9
//             1024 -> 512, 14^2   1.0-1.1  0.8-1.1  0.9-1.0
//             512 -> 2048, 7^2    1.1      0.5      1.0
//   3x3,      128 -> 128, 56^2    0.7-1.1  0.7-0.9  0.9-1.0
//   stride 2  256 -> 256, 28^2    0.9-1.2  0.8      1.1-1.2
//             512 -> 512, 14^2    0.7-1.4  0.5-0.9  1.1-1.3
//             64 -> 128, 32^2     0.6-0.8  1.0      0.9-1.0
//             128 -> 256, 16^2    0.9-1.1  0.7      1.5-1.9
//             256 -> 512, 8^2     0.6-0.8  0.6      2.8-2.9
//   3x3       3 -> 64, 32^2       0.7      1.0      0.5
// Only these weight gradients, of few positions and many channels, were faster in every run; elsewhere oneDNN's kernels
// are asked for first. For weight gradients of volumes of 4 to 8 channels oneDNN has products of columns alone. With
// AVX-512, one thread of an AMD EPYC (Zen 4), 4 -> 32, 2x2x2, 64^3 and batch 1 they took 1.6 times as long, and a
// reorder of dy beside them.
bool blocked_wins(const ConvolutionGeometry& g, BlockedDirection direction) {
  const bool volume = g.out_d() > 1 && g.stride_d * g.stride_h * g.stride_w == 1 &&
                      g.dilation_d * g.dilation_h * g.dilation_w == 1 &&
                      std::max({g.kernel_d, g.kernel_h, g.kernel_w}) <= 3;
  if (direction == BlockedDirection::BackwardWeights && volume && BlockedChannels(g).plain && g.in_channels > 3)
    return true;
  return direction == BlockedDirection::BackwardWeights && g.groups == 1 && g.is_planar() && g.kernel_h == 3 &&
         g.kernel_w == 3 && g.stride_h == 2 && g.stride_w == 2 && std::min(g.in_channels, g.out_channels) >= 128 &&
         g.out_h() * g.out_w() <= 14 * 14;
}

}  // namespace lockstep::kernels::native
