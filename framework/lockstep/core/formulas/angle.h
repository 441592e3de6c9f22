// sin and cos; see core/math_formulas.h.
#pragma once

namespace {
namespace formulas {

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

}  // namespace formulas
}  // namespace
