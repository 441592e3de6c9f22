// exp, log, tanh, the logistic function and erf; see core/math_formulas.h.
#pragma once

namespace {
namespace formulas {

constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // the first has 32 bits
constexpr double kInfinity = __builtin_inf(), kNaN = __builtin_nan("");

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: Taylor's series.
constexpr double kExpFull[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                               1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
constexpr double kExpShort[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};

// e^x = 2^k (1 + p).
template <class D>
struct Exponential {
  D k, p;
};
// The exponential of x + low.
template <class P, class D>
LOCKSTEP_INLINE Exponential<D> exponential(D x, D low) {
  const D k = nearest(x * kLog2E);
  D r = x - k * kLn2High;  // exact: the product has at most 43 bits
  r = multiply_add<P>(k, constant<D>(-kLn2Low), r) + low;
  D q;
  if constexpr (P::kFull) {
    q = polynomial<P>(r, kExpFull);
  } else {
    q = polynomial<P>(r, kExpShort);
  }
  return {k, multiply_add<P>(r * r, q, r)};
}

template <class P, class D>
LOCKSTEP_INLINE D exp_of_sum(D x, D low) {
  constexpr double kLeast = P::kFull ? -746 : -700, kLargest = P::kFull ? 710 : 700;
  x = x < kLeast ? constant<D>(kLeast) : x;
  x = x > kLargest ? constant<D>(kLargest) : x;
  const Exponential<D> e = exponential<P>(x, low);
  const Integers<D> k = to_integers(e.k);
  if constexpr (!P::kFull) return (1 + e.p) * power_of_two<D>(k);
  const Integers<D> half = k >> 1;  // in two steps, as 2^k may be no double
  return (1 + e.p) * power_of_two<D>(half) * power_of_two<D>(k - half);
}

template <class P, class D>
LOCKSTEP_INLINE D exp(D x) {
  return exp_of_sum<P>(x, D{});
}

// |x| = 2^exponent (1 + f), f from sqrt(1/2) - 1 to sqrt(2) - 1, for finite x other than 0.
template <class D>
struct Scaled {
  D exponent, f;
};
template <class P, class D>
LOCKSTEP_INLINE Scaled<D> scaled(D x) {
  using I = Integers<D>;
  I extra = I{};
  if constexpr (P::kFull) {  // subnormal numbers
    const I tiny = x < 0x1p-1022;
    x = tiny ? x * 0x1p54 : x;
    extra = tiny ? I{} + 54 : extra;
  }
  const I bits = (I)absolute(x);
  const I exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
  return {to_doubles<D>(exponent - extra), (D)(bits - (exponent << 52)) - 1};
}

// (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2: 2/3 + 2/5 z + ...
constexpr double kLogFull[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                               2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
constexpr double kLogShort[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11};

// The value of log where it is not a finite number.
template <class D>
LOCKSTEP_INLINE D log_special(D x, D y) {
  y = x == kInfinity ? x : y;
  y = x == 0 ? constant<D>(-kInfinity) : y;
  y = x < 0 ? constant<D>(kNaN) : y;
  return x != x ? x : y;
}

template <class P, class D>
LOCKSTEP_INLINE D log(D x) {
  const Scaled<D> m = scaled<P>(x);
  const D f = m.f, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  D series;
  if constexpr (P::kFull) {
    series = z * polynomial<P>(z, kLogFull);
  } else {
    series = z * polynomial<P>(z, kLogShort);
  }
  const D rest = half - multiply_add<P>(s, half + series, m.exponent * kLn2Low);
  return log_special(x, m.exponent * kLn2High + (f - rest));
}

// (tanh(x) / x - 1) / x^2 in x^2 up to 0.55^2: Chebyshev's interpolation.
constexpr double kTanhFull[] = {-0.3333333333333333,    0.13333333333333333,     -0.05396825396825263,
                                0.021869488536057545,   -0.008863235526193567,   0.003592127952591601,
                                -0.0014558331632523267, 0.0005900154482039871,   -0.00023904824216813017,
                                9.653771195495751e-05,  -3.8069134199429236e-05, 1.3343110444696212e-05,
                                -3.0095084486580246e-06};

// tanh |x| = t / (t + 2), t = e^(2 |x|) - 1.
template <class P, class D>
LOCKSTEP_INLINE D tanh(D x) {
  D a = absolute(x);
  a = a > 22 ? constant<D>(22) : a;
  const Exponential<D> e = exponential<P>(2 * a, D{});
  const D power = power_of_two<D>(to_integers(e.k));
  const D t = multiply_add<P>(power, e.p, power - 1);
  D y = t / (t + 2);
  if constexpr (P::kFull) {
    const D square = a * a;
    y = a < 0.55 ? fused(a * square, polynomial<P>(square, kTanhFull), a) : y;
  }
  return with_sign_of(y, x);
}

// 1 / (1 + e^-x), from exponentials of negative numbers alone: they cannot overflow, and small results keep their
// digits.
template <class P, class D>
LOCKSTEP_INLINE D sigmoid(D x) {
  const D e = exp<P>(-absolute(x)), sum = 1 + e;
  const D y = (x < 0 ? e : constant<D>(1)) / sum;
  if constexpr (!P::kFull) return y;
  return y - y * ((e - (sum - 1)) / sum);  // less what the sum was rounded by
}

// erf(x) / x in x^2 up to 1, and erfc(x) e^(x^2) in (x - 2.5) / (x + 2.5) from 1 to 6: Chebyshev's interpolation.
constexpr double kErfFull[] = {1.1283791670955126,      -0.3761263890318375,     0.11283791670954879,
                               -0.026866170645076792,   0.0052239776248180145,   -0.000854832698083379,
                               0.0001205533111164271,   -1.4925595266831182e-05, 1.6461000484121368e-06,
                               -1.6350312701054695e-07, 1.4659775274047436e-08,  -1.1372848856791674e-09,
                               5.957176147748911e-11};
constexpr double kErfShort[] = {1.1283791670615435,     -0.3761263846802871,   0.11283782495236845,
                                -0.026865430727670243,  0.005221031807858023,  -0.0008484080405535107,
                                0.00011265959025606609, -9.667044571486996e-06};
constexpr double kErfcFull[] = {0.2108063640611436,      -0.3717367339489734,     0.2517131932174494,
                                -0.1250330523788247,     0.039922539075574935,    -0.003993701166223159,
                                -0.002642365963784453,   0.0008759154630794508,   0.00022838036598153182,
                                -0.00012887741536369735, -3.4182063549802165e-05, 1.8617072081910595e-05,
                                7.5513017799442535e-06,  -2.3140931150942177e-06, -1.79706306540687e-06,
                                1.2966926825389417e-07,  3.3657006736237105e-07};
constexpr double kErfcShort[] = {0.2108063640952087,    -0.37173672992924583,  0.25171318658784725,
                                 -0.12503335844850405,  0.0399227196485477,    -0.003987378620796542,
                                 -0.002643469680528217, 0.0008271375850193227, 0.0002245486023731796};

template <class P, class D>
LOCKSTEP_INLINE D erf(D x) {
  D a = absolute(x);
  a = a > 6 ? constant<D>(6) : a;
  const D square = a * a, u = (a - 2.5) / (a + 2.5);
  D near, far;
  if constexpr (P::kFull) {
    near = a * polynomial<P>(square, kErfFull);
    far = polynomial<P>(u, kErfcFull);
  } else {
    near = a * polynomial<P>(square, kErfShort);
    far = polynomial<P>(u, kErfcShort);
  }
  far = 1 - far * exp<P>(-square);
  return with_sign_of(a < 1 ? near : far, x);
}

}  // namespace formulas
}  // namespace
