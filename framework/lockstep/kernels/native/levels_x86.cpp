#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::native {

namespace baseline {
extern const NativeKernels kernels;
}
namespace avx2 {
extern const NativeKernels kernels;
}
namespace avx512 {
extern const NativeKernels kernels;
}

std::span<const Level> levels() {
  static const Level all[] = {
      {"baseline", true, false, &baseline::kernels},
      {"avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), true, &avx2::kernels},
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"),
       true, &avx512::kernels},
  };
  return all;
}

namespace {

// Whether there are tiles for bf16 (AMX), and Linux lets this process use them: a process has to ask before it touches
// their registers (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24;  // CPUID, leaf 7, EDX
  constexpr long kRequest = 0x1023, kTileData = 18;        // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTiles) == 0) return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

const PairTable* pair_table(const NativeKernels& kernels) {
  static const bool pairs = __builtin_cpu_supports("avx512bf16"), tiles = pairs && may_use_tiles();
  if (tiles && kernels.pair_tiles.add != nullptr) return &kernels.pair_tiles;
  return pairs && kernels.pair_dots.add != nullptr ? &kernels.pair_dots : nullptr;
}

}  // namespace lockstep::kernels::native
