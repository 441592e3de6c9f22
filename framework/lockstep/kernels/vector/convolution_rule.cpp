#include "lockstep/kernels/vector/convolution.h"

namespace lockstep::vector {
namespace {

// oneDNN 2.6's time as a multiple of this kernel's, 16 samples on one Zen 5 core with AVX-512, forward, backward data,
// backward weights (there its first-layer kernel up to 3 channels, else one of AVX2 that asks for two reorders):
//                3x3, 16 wide, padded     5x5, 14 wide        5x5, 32 wide
//   3 ->  4        1.9   5.1  1.4       1.9   4.0  1.5      2.7   7.2  2.7
//   3 ->  6        1.6   3.5  0.9       1.5   2.9  1.1      2.0   4.9  1.8
//   3 ->  8        1.3   2.7  0.7       1.2   2.2  0.8      1.6   3.8  1.4
//   3 -> 16        0.7   1.4  0.4       0.6   1.2  0.4      0.8   1.8  0.7
//   6 ->  6        1.6   3.8  1.7       1.6   3.3  1.4      2.2   5.9  2.8
//   6 -> 16        0.7   1.4  1.6       0.6   1.3  1.2      0.8   2.3  2.3
//   8 ->  8        1.3   2.4  1.1       1.2   2.0  0.9      1.6   3.4  1.7
//   8 -> 16        0.7   1.3  1.1       0.6   1.0  0.9      0.8   1.7  1.8
// oneDNN pads to 16 what is the lanes of its kernels, here rows are padded. With AVX2 both pad to 8: the same rows are
// ahead, by less, and 6 -> 16 gradients are even. The baseline, without fused multiply-adds, is not offered.
bool fits(const generic::Conv2dGeometry& g) {
  constexpr std::int64_t kMostPixels = 64 * 64;
  return vector_level() != "baseline" && supports_convolution(g) && g.batch > 0 && g.in_h * g.in_w <= kMostPixels;
}

}  // namespace

bool direct_forward_wins(const generic::Conv2dGeometry& g) {
  return fits(g) && g.in_channels <= 8 && g.out_channels <= (g.out_w() < 14 ? 6 : 8);
}

bool direct_backward_data_wins(const generic::Conv2dGeometry& g) {
  return fits(g) && g.in_channels <= (g.in_w < 28 ? 6 : 8) && g.out_channels <= 32;
}

bool direct_backward_weights_wins(const generic::Conv2dGeometry& g) {
  if (!fits(g)) return false;
  if (g.in_channels <= 3) return g.out_channels <= (g.out_w() >= 24 && g.kernel_w >= 5 ? 8 : 4);
  return g.in_channels <= (g.out_w() < 24 ? 6 : 8) && g.out_w() >= 10 && g.out_channels <= 32;
}

}  // namespace lockstep::vector
