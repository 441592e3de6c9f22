#include "lockstep/kernels/vector/convolution.h"
#include <cstdlib>

namespace lockstep::vector {

bool direct_forward_wins(const generic::Conv2dGeometry& g) {
  return supports_convolution(g) && g.in_channels <= 8 && g.out_channels <= (getenv("F16") ? 16 : 8);
}
bool direct_backward_data_wins(const generic::Conv2dGeometry& g) {
  return supports_convolution(g) && g.in_channels <= 8 && g.out_channels <= 16;
}
bool direct_backward_weights_wins(const generic::Conv2dGeometry& g) {
  return supports_convolution(g) && g.in_channels <= 8 && g.out_channels <= 16;
}

}  // namespace lockstep::vector
