// Vectors of doubles, bit by bit: what the formulas are written with; see core/math_formulas.h.
#pragma once

namespace {
namespace formulas {

struct Full {
  static constexpr bool kFull = true;
};
struct Short {
  static constexpr bool kFull = false;
};

template <class D>
using Integers = decltype(D{} < D{});  // of 64 bits, a lane each

template <class D>
LOCKSTEP_INLINE D constant(double c) {
  return D{} + c;
}
// a * b + c
template <class P, class D>
LOCKSTEP_INLINE D multiply_add(D a, D b, D c) {
  if constexpr (P::kFull) {
    return fused(a, b, c);
  } else {
    return a * b + c;
  }
}
// c[0] + c[1] x + ...
template <class P, class D, int N>
LOCKSTEP_INLINE D polynomial(D x, const double (&c)[N]) {
  D sum = constant<D>(c[N - 1]);
#pragma GCC unroll 24
  for (int i = N - 2; i >= 0; --i) sum = multiply_add<P>(sum, x, constant<D>(c[i]));
  return sum;
}

constexpr double kRounder = 0x1.8p52;  // a sum with it is rounded to a whole number
template <class D>
LOCKSTEP_INLINE D nearest(D x) {
  return (x + kRounder) - kRounder;
}
// Between whole numbers below 2^51 as doubles and as integers.
template <class D>
LOCKSTEP_INLINE Integers<D> to_integers(D whole) {
  return (Integers<D>)(whole + kRounder) - (Integers<D>)constant<D>(kRounder);
}
template <class D>
LOCKSTEP_INLINE D to_doubles(Integers<D> whole) {
  return (D)(whole + (Integers<D>)constant<D>(kRounder)) - kRounder;
}
template <class D>
LOCKSTEP_INLINE D absolute(D x) {
  return (D)((Integers<D>)x & INT64_MAX);
}
template <class D>
LOCKSTEP_INLINE D with_sign_of(D magnitude, D sign) {
  return (D)((Integers<D>)magnitude | ((Integers<D>)sign & INT64_MIN));
}
template <class D>
LOCKSTEP_INLINE D power_of_two(Integers<D> k) {
  return (D)((k + 1023) << 52);
}

}  // namespace formulas
}  // namespace
