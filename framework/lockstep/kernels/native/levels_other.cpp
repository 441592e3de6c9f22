#include "lockstep/kernels/native/vector_kernels.h"

namespace lockstep::kernels::native {

namespace baseline {
extern const VectorKernels kernels;
}

std::span<const Level> levels() {
  static const Level all[] = {{"baseline", true, &baseline::kernels}};
  return all;
}

}  // namespace lockstep::kernels::native
