#include <algorithm>

#include "lockstep/kernels/native/blocked_convolution.h"

namespace lockstep::kernels::native {

// oneDNN 2.6's time (direct, AVX-512) as a multiple of these kernels', one thread of a Xeon with AVX-512 whose cores
// others shared: forward, backward data, backward weights. Batch 8 from 56^2 on, else 32 and 64:
//   1x1:  64 -> 64, 56^2       1.0 1.0 1.0    3x3, stride 2:  128 -> 128, 56^2   0.7 0.9 0.9
//         256 -> 64, 56^2      0.9 1.0 0.9                    256 -> 256, 28^2   1.2 0.8 1.2
//         128 -> 512, 28^2     0.9 0.9 0.9                    512 -> 512, 14^2   1.4 0.9 1.1
//         1024 -> 512, 14^2    1.0 1.1 1.0                    64 -> 128, 32^2    0.6 1.0 0.9
//         2048 -> 512, 7^2     2.4 1.0 0.9                    128 -> 256, 16^2   1.1 0.7 1.9
//   5x5:  32 -> 64, 28^2       0.5 1.0 1.0                    256 -> 512, 8^2    0.7 0.6 2.8
//   3x3, dilation 2: 64, 28^2  1.1 1.1 1.0    3x3, two groups: 64, 28^2          1.0 1.1 1.0
//   3x3x3: 16 -> 32, 16^3      1.0 0.9 1.0    a filter per channel: 128, 28^2    0.9 0.9 0.6
// So oneDNN's are asked for first, except where its weight gradients have few positions and many channels to sum over.
bool blocked_wins(const ConvolutionGeometry& g, BlockedDirection direction) {
  return direction == BlockedDirection::BackwardWeights && g.groups == 1 && g.is_planar() && g.kernel_h == 3 &&
         g.kernel_w == 3 && g.stride_h == 2 && g.stride_w == 2 && std::min(g.in_channels, g.out_channels) >= 128 &&
         g.out_h() * g.out_w() <= 14 * 14;
}

}  // namespace lockstep::kernels::native
