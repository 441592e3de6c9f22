#include <algorithm>

#include "lockstep/kernels/native/blocked_convolution.h"

namespace lockstep::kernels::native {

// oneDNN 2.6's time (direct, AVX-512) as a multiple of these kernels', one thread of a Xeon whose cores others shared,
// so that single figures are off by up to a third: forward, backward data, backward weights; the weights of strided 3x3
// filters from two runs. Batch 8; 32 for images of 8^2 to 32^2 with a stride of 2; 16 for filters of 5x5:
//   1x1:  64 -> 64, 56^2       1.0 1.0 1.0    3x3, stride 2:  128 -> 128, 56^2   1.0 0.9 0.9-1.0
//         256 -> 64, 56^2      0.9 1.0 0.9                    256 -> 256, 28^2   0.9 0.8 1.1-1.2
//         128 -> 512, 28^2     0.9 0.9 0.9                    512 -> 512, 14^2   0.8 0.9 1.1-1.3
//         256 -> 1024, 14^2    1.0 1.2 1.0                    64 -> 128, 32^2    0.8 1.0 0.9-1.0
//         1024 -> 512, 14^2    1.0 0.9 0.9                    128 -> 256, 16^2   0.9 0.7 1.5-1.9
//         512 -> 2048, 7^2     1.1 0.5 1.0                    256 -> 512, 8^2    0.8 0.6 2.8-2.9
//   7x7, stride 2: 3 -> 64     0.6 0.9 0.9    3x3: 3 -> 64, 32^2                 0.7 1.0 0.5
//   3x3, dilation 2: 64, 28^2  1.1 1.1 1.0    3x3, two groups: 64, 28^2          1.0 1.1 1.0
//   3x3x3: 16 -> 32, 16^3      1.0 0.9 1.0    a filter per channel: 128, 28^2    0.9 0.9 0.6
// So oneDNN's are asked for first, except where its weight gradients have few positions and many channels to sum over.
bool blocked_wins(const ConvolutionGeometry& g, BlockedDirection direction) {
  return direction == BlockedDirection::BackwardWeights && g.groups == 1 && g.is_planar() && g.kernel_h == 3 &&
         g.kernel_w == 3 && g.stride_h == 2 && g.stride_w == 2 && std::min(g.in_channels, g.out_channels) >= 128 &&
         g.out_h() * g.out_w() <= 14 * 14;
}

}  // namespace lockstep::kernels::native
