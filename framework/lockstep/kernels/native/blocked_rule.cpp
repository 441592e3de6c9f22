#include "lockstep/kernels/native/blocked_convolution.h"

namespace lockstep::kernels::native {

bool blocked_wins(const ConvolutionGeometry&, BlockedDirection) { return false; }

}  // namespace lockstep::kernels::native
