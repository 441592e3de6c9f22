#include "lockstep/kernels/native/winograd.h"

namespace lockstep::kernels::native {

int winograd_tile(const ConvolutionGeometry& g, WinogradDirection direction, KernelOptions::ConvMath math) {
  if (math == KernelOptions::ConvMath::Exact || native_level() == "baseline" || !supports_winograd(g)) return 0;
  if (std::min(g.in_channels, g.out_channels) < 16 || g.batch == 0) return 0;
  (void)direction;
  return math == KernelOptions::ConvMath::Fast ? 4 : 0;
}

}  // namespace lockstep::kernels::native
