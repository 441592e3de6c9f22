#include "lockstep/kernels/native/convolution.h"

namespace lockstep::kernels::native {
namespace {

// oneDNN 2.6's time as a multiple of these kernels', 16 samples on one Zen 5 core with AVX-512, each for forward,
// backward data and backward weights (there oneDNN's first-layer kernel up to 3 channels, else an AVX2 one for which
// the plan has to reorder two inputs, not counted here):
//               3x3 padded, 16 wide      5x5, 14 wide         5x5, 32 wide
//   3 ->  4         2.0  5.2  1.4        1.8  4.2  1.6        2.6  7.3  2.8
//   3 ->  6         1.6  3.6  0.9        1.4  3.3  1.1        2.0  5.2  2.1
//   3 ->  8         1.3  2.8  0.8        1.1  2.2  0.9        1.6  3.7  1.4
//   3 -> 16         0.7  1.6  0.4        0.6  1.1  0.5        0.8  1.6  0.6
//   6 ->  6         1.7  3.9  1.7        1.4  3.3  1.7        2.1  5.8  2.9
//   6 -> 16         0.7  1.6  1.5        0.6  1.4  1.5        0.8  2.3  2.4
//   8 ->  8         1.5  2.7  1.1        1.1  1.9  1.1        1.6  3.3  1.7
//   8 -> 16         0.7  1.3  1.2        0.6  1.0  1.1        0.8  1.7  1.8
// oneDNN pads the channels that are its lanes to 16, here rows are padded. With AVX2 on both sides (it pads to 8):
//   3 ->  6         1.6  2.7  1.3        1.5  1.7  0.9        2.2  2.8  1.4
//   6 -> 16         1.0  1.5  1.1        0.8  1.0  0.9        1.1  1.5  1.2
//   8 ->  8         1.4  1.0  0.8        1.3  0.7  0.6        1.9  1.0  0.9
// The baseline, without fused multiply-adds, is not offered, unless bits must be those of the other levels.
bool fits(const ConvolutionGeometry& g, bool portable) {
  constexpr std::int64_t kMostPixels = 64 * 64;
  return (portable || native_fused()) && supports_convolution(g) && g.batch > 0 && g.in_h * g.in_w <= kMostPixels;
}

}  // namespace

bool direct_forward_wins(const ConvolutionGeometry& g, bool portable) {
  return fits(g, portable) && g.in_channels <= 8 && g.out_channels <= (g.out_w() < 14 ? 6 : 8);
}

bool direct_backward_data_wins(const ConvolutionGeometry& g, bool portable) {
  return fits(g, portable) && g.in_channels <= (g.in_w < 28 ? 6 : 8) && g.out_channels <= 32;
}

bool direct_backward_weights_wins(const ConvolutionGeometry& g, bool portable) {
  if (!fits(g, portable)) return false;
  if (g.in_channels <= 3) return g.out_channels <= (g.out_w() >= 24 && g.kernel_w >= 5 ? 8 : 4);
  return g.in_channels <= (g.out_w() < 24 ? 6 : 8) && g.out_w() >= 10 && g.out_channels <= 32;
}

}  // namespace lockstep::kernels::native
