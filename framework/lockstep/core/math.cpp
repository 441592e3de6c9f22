#include "lockstep/core/math.h"

#include <cstdint>

#define LOCKSTEP_INLINE [[gnu::always_inline]] inline

namespace {

// The formulas are for vectors: both lanes hold the argument.
using Two __attribute__((vector_size(16))) = double;

LOCKSTEP_INLINE Two fused(Two a, Two b, Two c) {
  const double once = __builtin_fma(a[0], b[0], c[0]);
  return Two{once, once};
}

}  // namespace

#include "lockstep/core/math_formulas.h"

namespace lockstep::math {
namespace {

using formulas::Full;

LOCKSTEP_INLINE Two both(double x) { return Two{x, x}; }

// f of vectors, compiled twice: where the processor has fused multiply-adds, as instructions; else they are calls of
// the C library's function, which is exact too, and slow. The bits are the same.
template <class F, class... X>
double portable(F f, X... x) {
  return f(both(x)...)[0];
}
#if defined(__x86_64__) && !defined(__FMA__)
template <class F, class... X>
[[gnu::target("fma")]] double with_instructions(F f, X... x) {
  return f(both(x)...)[0];
}
const bool kHasInstructions = __builtin_cpu_supports("fma");
template <class F, class... X>
LOCKSTEP_INLINE double evaluate(F f, X... x) {
  return kHasInstructions ? with_instructions(f, x...) : portable(f, x...);
}
#else
template <class F, class... X>
LOCKSTEP_INLINE double evaluate(F f, X... x) {
  return portable(f, x...);
}
#endif

}  // namespace

double exp(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::exp<Full>(v); }, x);
}
double log(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::log<Full>(v); }, x);
}
double tanh(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::tanh<Full>(v); }, x);
}
double sigmoid(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::sigmoid<Full>(v); }, x);
}
double erf(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::erf<Full>(v); }, x);
}
double sin(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::sin<Full>(v); }, x);
}
double cos(double x) {
  return evaluate(
      [](Two v) __attribute__((always_inline)) { return formulas::cos<Full>(v); }, x);
}
double pow(double x, double y) {
  return evaluate(
      [](Two u, Two v) __attribute__((always_inline)) { return formulas::pow<Full>(u, v); }, x, y);
}

}  // namespace lockstep::math
