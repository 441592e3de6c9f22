#include "lockstep/kernels/native/vector_kernels.h"

namespace lockstep::vector {

namespace baseline {
extern const VectorKernels kernels;
}

std::span<const Level> levels() {
  static const Level all[] = {{"baseline", true, &baseline::kernels}};
  return all;
}

}  // namespace lockstep::vector
