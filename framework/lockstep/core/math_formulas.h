// exp, log, tanh, the logistic function, erf, sin, cos and pow on vectors of doubles, from additions, products,
// quotients and fused multiply-adds alone: the same bits on every processor and in every library of the system. A
// source includes this after it has defined LOCKSTEP_INLINE and, for each of its vector types D, `D fused(D a, D b, D
// c)` = a * b + c rounded once. All here is local to the source: kernels/native/levels compiles it once per set of
// instructions.
//
// Full is for results in f64 (at most 2 units in the last place; tests/core/test_math.cpp), Short for results that are
// rounded to f32: relative error below 1e-8, no fused multiply-adds, arguments within the range of f32.
#pragma once

#include <cstdint>

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
// Of x + low.
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

// x = 2^exponent (1 + f), f from sqrt(1/2) - 1 to sqrt(2) - 1, for positive finite x.
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
  const I bits = (I)x;
  const I exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
  return {to_doubles<D>(exponent - extra), (D)(bits - (exponent << 52)) - 1};
}

// (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2: 2/3 + 2/5 z + ...
constexpr double kLogFull[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                               2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
constexpr double kLogShort[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11};

// What log is where it is no finite number.
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

// An angle as quadrant * pi / 2 + (r + low), |r| <= pi / 4 or a little more.
template <class D>
struct Angle {
  Integers<D> quadrant;
  D r, low;
};

constexpr double kHalfPi1 = 0x1.921fb544p+0, kHalfPi2 = 0x1.0b4611a6p-34,
                 kHalfPi3 = 0x1.3198a2e037073p-69;  // 33 + 33 + 53 bits
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kLargestSmallAngle = 12800;  // beyond, quotient and parts of pi / 2 make no exact products

// 2 / pi in binary.
constexpr std::uint64_t kTwoOverPi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                        0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                                        0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                                        0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

// 64 bits of it, from the one of weight 2^-(first + 1) on; zeros before it begins.
LOCKSTEP_INLINE std::uint64_t two_over_pi(int first) {
  const auto word = [](int i) { return i < 0 ? std::uint64_t{0} : kTwoOverPi[i]; };
  const int from = first >= 0 ? first / 64 : -((63 - first) / 64), shift = first - 64 * from;
  const std::uint64_t high = word(from) << shift;
  return shift == 0 ? high : high | word(from + 1) >> (64 - shift);
}

// Payne and Hanek: the product of |x| with those bits of 2 / pi that leave no multiple of 4.
[[gnu::noinline]] std::int64_t reduce_large_angle(double x, double* r, double* low) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1075;
  if (exponent == 0x7ff - 1075) {  // infinite or NaN
    *r = *low = x - x;
    return 0;
  }
  const std::uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  const int first = exponent - 2;  // its weight times 2^exponent is 2: two bits before the point remain
  using Wide = unsigned __int128;
  const Wide c = static_cast<Wide>(mantissa) * two_over_pi(first + 128);
  const Wide b = static_cast<Wide>(mantissa) * two_over_pi(first + 64) + static_cast<std::uint64_t>(c >> 64);
  const std::uint64_t a = mantissa * two_over_pi(first) + static_cast<std::uint64_t>(b >> 64);
  Wide fraction = static_cast<Wide>(a) << 64 | static_cast<std::uint64_t>(b);  // and 64 bits more
  std::uint64_t more = static_cast<std::uint64_t>(c);
  std::int64_t quadrant = static_cast<std::int64_t>(fraction >> 126);
  fraction = fraction << 2 | more >> 62;
  more <<= 2;
  const bool above = fraction >> 127 != 0;  // half a quadrant: counted from the next one
  if (above) {
    ++quadrant;
    fraction = ~fraction;
    more = ~more;
  }
  double scale = 0x1p-53;
  while (fraction >> 127 == 0 && scale > 0x1p-200) {
    fraction = fraction << 1 | more >> 63;
    more <<= 1;
    scale *= 0.5;
  }
  const double high = static_cast<double>(static_cast<std::int64_t>(fraction >> 75)) * scale;
  const double rest =
      static_cast<double>(static_cast<std::int64_t>(fraction >> 22 & 0x1fffffffffffff)) * scale * 0x1p-53;
  const double sum = high * kHalfPiHigh;
  const double error = __builtin_fma(high, kHalfPiHigh, -sum) + (high * kHalfPiLow + rest * kHalfPiHigh);
  const bool negative = above != (x < 0);
  *r = negative ? -sum : sum;
  *low = negative ? -error : error;
  return x < 0 ? -quadrant : quadrant;
}

template <class P, class D>
LOCKSTEP_INLINE Angle<D> reduced(D x) {
  const D k = nearest(x * 0x1.45f306dc9c883p-1);
  const D a = x - k * kHalfPi1, b = k * kHalfPi2, r = a - b;  // both products are exact
  const D error = (a - r) - b;
  const D c = k * kHalfPi3, sum = r - c;
  Angle<D> angle{to_integers(k), sum, ((r - sum) - c) + error};
  constexpr int kCount = sizeof(D) / sizeof(double);
  double all[kCount];
  __builtin_memcpy(all, &x, sizeof x);
  for (int i = 0; i < kCount; ++i) {
    if (__builtin_fabs(all[i]) <= kLargestSmallAngle) continue;
    double high, low;
    angle.quadrant[i] = reduce_large_angle(all[i], &high, &low);
    angle.r[i] = high;
    angle.low[i] = low;
  }
  return angle;
}

// (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in r^2: Taylor's series.
constexpr double kSineFull[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                                -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
constexpr double kSineShort[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880};
constexpr double kCosineFull[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                                  1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
constexpr double kCosineShort[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800};

template <class P, class D>
LOCKSTEP_INLINE D sine_in(const Angle<D>& angle, Integers<D> quadrant) {
  const D r = angle.r, z = r * r, half = 0.5 * z;
  D sine_tail, cosine_tail;
  if constexpr (P::kFull) {
    sine_tail = polynomial<P>(z, kSineFull);
    cosine_tail = polynomial<P>(z, kCosineFull);
  } else {
    sine_tail = polynomial<P>(z, kSineShort);
    cosine_tail = polynomial<P>(z, kCosineShort);
  }
  const D sine = r + (z * r * sine_tail + angle.low * (1 - half));
  const D one = 1 - half;
  const D cosine = one + (((1 - one) - half) + (z * z * cosine_tail - r * angle.low));
  const D value = (quadrant & 1) != 0 ? cosine : sine;
  return (quadrant & 2) != 0 ? -value : value;
}
template <class P, class D>
LOCKSTEP_INLINE D sin(D x) {
  const Angle<D> angle = reduced<P>(x);
  return x == 0 ? x : sine_in<P>(angle, angle.quadrant);
}
template <class P, class D>
LOCKSTEP_INLINE D cos(D x) {
  const Angle<D> angle = reduced<P>(x);
  return sine_in<P>(angle, angle.quadrant + 1);
}

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
