#include "lockstep/core/subnormals.h"

#include <atomic>

namespace lockstep {
namespace {

// Results that are subnormal and operands that are: two flags on x86. The compiler must not compute them itself.
bool flushes_here() {
  const volatile float least = 0x1p-126F, subnormal = 0x1p-127F;
  const volatile float half = least / 2, whole = subnormal * 2;
  return half == 0 || whole == 0;
}

}  // namespace

bool flushes_subnormals() {
  std::atomic<bool> any = false;
#pragma omp parallel
  {
    if (flushes_here()) any = true;
  }
  return any;
}

}  // namespace lockstep
