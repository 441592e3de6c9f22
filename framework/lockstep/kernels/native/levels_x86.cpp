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
      {"baseline", true, &baseline::kernels},
      {"avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), &avx2::kernels},
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"),
       &avx512::kernels},
  };
  return all;
}

}  // namespace lockstep::kernels::native
