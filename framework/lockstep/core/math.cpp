#include "lockstep/core/math.h"

#include <cstdint>

#define LOCKSTEP_INLINE [[gnu::always_inline]] inline

namespace {

// The formulas are for vectors: both lanes hold the argument.
typedef double Two __attribute__((vector_size(16)));

LOCKSTEP_INLINE Two fused(Two a, Two b, Two c) {
  const double once = __builtin_fma(a[0], b[0], c[0]);
  return Two{once, once};
}

}  // namespace

#include "lockstep/core/math_formulas.h"

// Where the processor has fused multiply-adds, the compiler's own; else the C library's, which are exact, too, and
// slow.
#if defined(__x86_64__) && !defined(__FMA__)
#define LOCKSTEP_CLONES [[gnu::target_clones("default", "fma")]]
#else
#define LOCKSTEP_CLONES
#endif

namespace lockstep::math {

namespace {
using formulas::Full;
LOCKSTEP_INLINE Two both(double x) { return Two{x, x}; }
}  // namespace

LOCKSTEP_CLONES double exp(double x) { return formulas::exp<Full>(both(x))[0]; }
LOCKSTEP_CLONES double log(double x) { return formulas::log<Full>(both(x))[0]; }
LOCKSTEP_CLONES double tanh(double x) { return formulas::tanh<Full>(both(x))[0]; }
LOCKSTEP_CLONES double sigmoid(double x) { return formulas::sigmoid<Full>(both(x))[0]; }
LOCKSTEP_CLONES double erf(double x) { return formulas::erf<Full>(both(x))[0]; }
LOCKSTEP_CLONES double sin(double x) { return formulas::sin<Full>(both(x))[0]; }
LOCKSTEP_CLONES double cos(double x) { return formulas::cos<Full>(both(x))[0]; }
LOCKSTEP_CLONES double pow(double x, double y) { return formulas::pow<Full>(both(x), both(y))[0]; }

}  // namespace lockstep::math
