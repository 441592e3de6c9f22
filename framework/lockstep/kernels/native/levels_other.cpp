#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

namespace baseline {
extern const NativeKernels kernels;
}

std::span<const Level> levels() {
  static const Level all[] = {{"baseline", true, false, &baseline::kernels}};
  return all;
}

const PairTable* pair_table(const NativeKernels&) { return nullptr; }

}  // namespace lockstep::kernels::native
