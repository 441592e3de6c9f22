#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

namespace baseline {
extern const NativeKernels kernels;
}

#ifdef __FP_FAST_FMAF
constexpr bool kFused = true;
#else
constexpr bool kFused = false;
#endif

std::span<const Level> levels() {
  static const Level all[] = {{"baseline", true, kFused, &baseline::kernels}};
  return all;
}

const PairTable* pair_table(const NativeKernels&) { return nullptr; }

}  // namespace lockstep::kernels::native
