#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

namespace neon {
extern const NativeKernels kernels;
}

// Every AArch64 processor has these instructions.
std::span<const Level> levels() {
  static const Level all[] = {{"neon", true, true, &neon::kernels}};
  return all;
}

const PairTable* pair_table(const NativeKernels&) { return nullptr; }

}  // namespace lockstep::kernels::native
