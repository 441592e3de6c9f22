// pow, by a logarithm of some 70 digits of binary; see core/math_formulas.h.
#pragma once

namespace {
namespace formulas {

// Two doubles whose sum is the number.
template <class D>
struct Sum {
  D high, low;
};

// log of a positive finite x, with some 70 digits of binary.
template <class D>
LOCKSTEP_INLINE Sum<D> long_log(D x) {
  constexpr double kThirds = 0x1.5555555555555p-1, kThirdsLow = 0x1.5555555555555p-55;
  constexpr double kTail[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                              2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const Scaled<D> m = scaled<Full>(x);
  const D f = m.f, t = 2 + f, t_low = f - (t - 2);
  const D s = f / t, s_low = (fused(-s, t, f) - s * t_low) / t;
  const D z = s * s, z_low = fused(s, s, -z) + 2 * s * s_low;
  const D cube = s * z, cube_low = fused(s, z, -cube) + (s * z_low + s_low * z);
  const D d = cube * kThirds, d_low = fused(cube, constant<D>(kThirds), -d) + (cube * kThirdsLow + cube_low * kThirds);
  const D tail = cube * z * polynomial<Full>(z, kTail);
  const D h = 2 * s + d, l = ((2 * s - h) + d) + (2 * s_low + d_low + tail);
  const D a = m.exponent * kLn2High, sum = a + h, error = (a - sum) + h;
  const D rest = error + (l + m.exponent * kLn2Low);
  const D high = sum + rest;
  return {high, (sum - high) + rest};
}

template <class P, class D>
LOCKSTEP_INLINE D pow(D x, D y) {
  using I = Integers<D>;
  const D a = absolute(x);
  Sum<D> l;
  if constexpr (P::kFull) {
    l = long_log(a);
    l.low = a == kInfinity ? D{} : l.low;
    l.high = log_special(a, l.high);
  } else {
    l = {log<P>(a), D{}};
  }
  const D p = y * l.high;
  D low = D{};
  if constexpr (P::kFull) {
    low = fused(y, l.high, -p) + y * l.low;
    low = absolute(p) < 1000 ? low : D{};
  }
  D result = exp_of_sum<P>(p, low);
  // Whole numbers and odd ones: from 2^52 on all are whole, and the last digit tells.
  const D b = absolute(y);
  const auto is_whole = [](D v) { return (v + 0x1p52) - 0x1p52 == v; };
  const I large = b >= 0x1p52, whole = large | is_whole(b);
  const I odd = large ? ((b < 0x1p53) & (((I)b & 1) != 0)) : (whole & ~is_whole(0.5 * b));
  const I negative = (I)x < 0;
  result = (negative & odd) ? -result : result;
  result = ((x < 0) & (x != -kInfinity) & ~whole & (b != kInfinity)) ? constant<D>(kNaN) : result;
  result = ((x != x) | (y != y)) ? x + y : result;
  result = ((x == -1) & (b == kInfinity)) ? constant<D>(1) : result;
  return ((y == 0) | (x == 1)) ? constant<D>(1) : result;
}

}  // namespace formulas
}  // namespace
