// Discrete Fourier transforms of lines, as many at once as a register has lanes, for table.cpp. Stockham's self-sorting
// algorithm with mixed radices (Van Loan, "Computational frameworks for the fast Fourier transform" (1992),
// section 1.7); a prime radix above 5 is a plain sum. Lanes are lines and nothing is fused, so the bits of a line
// depend neither on the level nor on its neighbours.
#pragma once

#include "lockstep/kernels/native/levels/pointwise.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class T>
class Fourier {
 public:
  using Pass = typename FourierTable<T>::Pass;

  static void run(const Pass& pass, std::int64_t begin, std::int64_t end, T* scratch) {
    T* const x = scratch;
    T* const y = scratch + 2 * (pass.plan.length + 1) * kWidth;
    for (std::int64_t line = begin; line < end; line += kWidth) {
      Block block;
      block.count = static_cast<int>(end - line < kWidth ? end - line : kWidth);
      for (int w = 0; w < kWidth; ++w) {
        const std::int64_t l = line + (w < block.count ? w : block.count - 1);  // a missing lane repeats the last one
        block.outer[w] = l / pass.inner;
        block.index[w] = l % pass.inner;
      }
      load_lines(pass, block, x, y);
      store_lines(pass, block, transform(pass.plan, x, y));
    }
  }

 private:
  using V = typename NativeOf<T>::Type;
  using Plan = typename FourierTable<T>::Plan;
  static constexpr int kWidth = static_cast<int>(sizeof(V) / sizeof(T));

  struct Block {
    std::int64_t outer[kWidth], index[kWidth];
    int count;
  };
  struct Complex {
    V re, im;
  };
  LOCKSTEP_INLINE static Complex sum(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  LOCKSTEP_INLINE static Complex difference(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  LOCKSTEP_INLINE static Complex scaled(Complex a, T c) { return {a.re * c, a.im * c}; }
  LOCKSTEP_INLINE static Complex conjugate(Complex a) { return {a.re, -a.im}; }
  LOCKSTEP_INLINE static Complex times_i(Complex a) { return {-a.im, a.re}; }
  LOCKSTEP_INLINE static Complex times(Complex a, const T* root) {
    return {a.re * root[0] - a.im * root[1], a.re * root[1] + a.im * root[0]};
  }
  LOCKSTEP_INLINE static Complex at(const T* x, std::int64_t j) {
    return {load_native(x + 2 * j * kWidth), load_native(x + (2 * j + 1) * kWidth)};
  }
  LOCKSTEP_INLINE static void put(T* x, std::int64_t j, Complex a) {
    store_native(x + 2 * j * kWidth, a.re);
    store_native(x + (2 * j + 1) * kWidth, a.im);
  }

  // In place; `unit` is the root e^(s 2 pi i / R) and `second` its square.
  LOCKSTEP_INLINE static void small(Complex (&a)[2], const T*, const T*) {
    const Complex b = difference(a[0], a[1]);
    a[0] = sum(a[0], a[1]);
    a[1] = b;
  }
  LOCKSTEP_INLINE static void small(Complex (&a)[3], const T* unit, const T*) {
    const Complex total = sum(a[1], a[2]);
    const Complex even = sum(a[0], scaled(total, unit[0])), odd = times_i(scaled(difference(a[1], a[2]), unit[1]));
    a[0] = sum(a[0], total);
    a[1] = sum(even, odd);
    a[2] = difference(even, odd);
  }
  LOCKSTEP_INLINE static void small(Complex (&a)[4], const T* unit, const T*) {
    const Complex even = sum(a[0], a[2]), odd = sum(a[1], a[3]), left = difference(a[0], a[2]);
    const Complex right = times_i(scaled(difference(a[1], a[3]), unit[1]));  // unit is i or -i
    a[0] = sum(even, odd);
    a[1] = sum(left, right);
    a[2] = difference(even, odd);
    a[3] = difference(left, right);
  }
  LOCKSTEP_INLINE static void small(Complex (&a)[5], const T* unit, const T* second) {
    const Complex outer = sum(a[1], a[4]), inner = sum(a[2], a[3]);
    const Complex outer_slope = difference(a[1], a[4]), inner_slope = difference(a[2], a[3]);
    const Complex first_even = sum(a[0], sum(scaled(outer, unit[0]), scaled(inner, second[0])));
    const Complex second_even = sum(a[0], sum(scaled(outer, second[0]), scaled(inner, unit[0])));
    const Complex first_odd = times_i(sum(scaled(outer_slope, unit[1]), scaled(inner_slope, second[1])));
    const Complex second_odd = times_i(difference(scaled(outer_slope, second[1]), scaled(inner_slope, unit[1])));
    a[0] = sum(a[0], sum(outer, inner));
    a[1] = sum(first_even, first_odd);
    a[2] = sum(second_even, second_odd);
    a[3] = difference(second_even, second_odd);
    a[4] = difference(first_even, first_odd);
  }

  // One stage: y[q + stride (R p + k)] = w^(k p stride) sum over i of x[q + stride (p + m i)] e^(s 2 pi i k / R), where
  // m = (what is left of the length) / R.
  template <int R>
  static void stage(const Plan& plan, std::int64_t m, std::int64_t stride, const T* x, T* y) {
    const std::int64_t unit = plan.length / R;
    for (std::int64_t p = 0; p < m; ++p) {
      for (std::int64_t q = 0; q < stride; ++q) {
        Complex a[R];
#pragma GCC unroll 5
        for (int i = 0; i < R; ++i) a[i] = at(x, q + stride * (p + m * i));
        small(a, plan.roots + 2 * unit, plan.roots + 2 * (R > 2 ? 2 * unit : 0));
#pragma GCC unroll 5
        for (int k = 0; k < R; ++k)
          put(y, q + stride * (R * p + k), k == 0 || p == 0 ? a[k] : times(a[k], plan.roots + 2 * (k * p * stride)));
      }
    }
  }

  // An odd radix: the results k and radix - k share their products.
  static void odd_stage(const Plan& plan, std::int64_t radix, std::int64_t m, std::int64_t stride, const T* x, T* y) {
    const std::int64_t unit = plan.length / radix;
    for (std::int64_t p = 0; p < m; ++p) {
      for (std::int64_t q = 0; q < stride; ++q) {
        const auto input = [=](std::int64_t i) __attribute__((always_inline)) {
          return at(x, q + stride * (p + m * i));
        };
        const auto output = [=](std::int64_t k, Complex a) __attribute__((always_inline)) {
          put(y, q + stride * (radix * p + k), p == 0 ? a : times(a, plan.roots + 2 * (k * p * stride)));
        };
        Complex total = input(0);
        for (std::int64_t i = 1; i < radix; ++i) total = sum(total, input(i));
        put(y, q + stride * radix * p, total);
        for (std::int64_t k = 1; 2 * k < radix; ++k) {
          Complex even = input(0), odd{};
          for (std::int64_t i = 1; 2 * i < radix; ++i) {
            const T* root = plan.roots + 2 * (i * k % radix * unit);
            const Complex one = input(i), other = input(radix - i);
            even = sum(even, scaled(sum(one, other), root[0]));
            odd = sum(odd, scaled(difference(one, other), root[1]));
          }
          output(k, sum(even, times_i(odd)));
          output(radix - k, difference(even, times_i(odd)));
        }
      }
    }
  }

  // Returns x or y, which holds the result.
  static const T* transform(const Plan& plan, T* x, T* y) {
    std::int64_t left = plan.length, stride = 1;
    for (std::int64_t f = 0; f < plan.count; ++f) {
      const std::int64_t radix = plan.radices[f];
      left /= radix;
      if (radix == 2) stage<2>(plan, left, stride, x, y);
      if (radix == 3) stage<3>(plan, left, stride, x, y);
      if (radix == 4) stage<4>(plan, left, stride, x, y);
      if (radix == 5) stage<5>(plan, left, stride, x, y);
      if (radix > 5) odd_stage(plan, radix, left, stride, x, y);
      stride *= radix;
      T* const result = y;
      y = x;
      x = result;
    }
    return x;
  }

  // Where entry e of a side with `kept` frequencies lies among `length`: the second half of them is negative.
  LOCKSTEP_INLINE static std::int64_t place(std::int64_t e, std::int64_t kept, std::int64_t length) {
    return 2 * e < kept ? e : length - kept + e;
  }

  // Pairs of numbers: complex elements, or a real line as complex ones.
  static void load_pairs(const Pass& s, const Block& block, std::int64_t length, T* x, bool sparse) {
    if (sparse) {
      for (std::int64_t j = 0; j < 2 * s.plan.length * kWidth; ++j) x[j] = 0;
    }
    const bool together =
        block.outer[0] == block.outer[kWidth - 1] && block.index[kWidth - 1] == block.index[0] + kWidth - 1;
    const T* const first = s.from + 2 * (block.outer[0] * length * s.inner + block.index[0]);
    for (std::int64_t e = 0; together && e < length; ++e) {
      const T* from = first + 2 * e * s.inner;
      T* to = x + 2 * place(e, sparse ? length : 2 * length, s.plan.length) * kWidth;
      for (int w = 0; w < kWidth; ++w) {
        to[w] = from[2 * w];
        to[kWidth + w] = from[2 * w + 1];
      }
    }
    for (int w = 0; !together && w < kWidth; ++w) {
      const T* from = s.from + 2 * (block.outer[w] * length * s.inner + block.index[w]);
      for (std::int64_t e = 0; e < length; ++e, from += 2 * s.inner) {
        T* to = x + 2 * place(e, sparse ? length : 2 * length, s.plan.length) * kWidth + w;
        to[0] = from[0];
        to[kWidth] = from[1];
      }
    }
  }

  static void load_lines(const Pass& s, const Block& block, T* x, T* y) {
    const std::int64_t n = s.plan.length;
    if (s.line == FourierLine::Complex) return load_pairs(s, block, s.from_length, x, s.from_length < n);
    if (s.line == FourierLine::ToHalf && s.plan.half_roots != nullptr) return load_pairs(s, block, n, x, false);
    if (s.line == FourierLine::ToHalf) {
      for (int w = 0; w < kWidth; ++w) {
        const T* from = s.from + block.outer[w] * n;
        for (std::int64_t j = 0; j < n; ++j) {
          x[2 * j * kWidth + w] = from[j];
          x[(2 * j + 1) * kWidth + w] = 0;
        }
      }
      return;
    }
    load_half(s, block, s.plan.half_roots != nullptr ? y : x);
    s.plan.half_roots != nullptr ? fold_half(s.plan, y, x) : mirror(n, x);
  }

  // The first half of a spectrum with its factors; frequencies that are not there are 0.
  static void load_half(const Pass& s, const Block& block, T* x) {
    const std::int64_t n = s.plan.length, last = s.plan.half_roots != nullptr ? n : n / 2;
    for (int w = 0; w < kWidth; ++w) {
      const T* from = s.from + 2 * block.outer[w] * s.from_length;
      for (std::int64_t k = 0; k <= last; ++k) {
        const bool end = k == 0 || (k == last && s.plan.half_roots != nullptr), there = k < s.from_length;
        const T factor = end ? T(1) : s.middle;
        x[2 * k * kWidth + w] = there ? from[2 * k] * factor : T(0);
        x[(2 * k + 1) * kWidth + w] = there && !end ? from[2 * k + 1] * factor : T(0);
      }
    }
  }
  // The spectrum z of the complex numbers x[2j] + i x[2j + 1] from the half spectrum h of the real numbers x: z[k] =
  // (h[k] + conj h[m - k]) + i w^k (h[k] - conj h[m - k]), with w the root of order 2m.
  static void fold_half(const Plan& plan, const T* h, T* z) {
    const std::int64_t m = plan.length;
    for (std::int64_t k = 0; k < m; ++k) {
      const Complex a = at(h, k), b = conjugate(at(h, m - k));
      put(z, k, sum(sum(a, b), times_i(times(difference(a, b), plan.half_roots + 2 * k))));
    }
  }
  // Of an odd number of elements: the negative frequencies.
  static void mirror(std::int64_t n, T* x) {
    for (std::int64_t k = 1; 2 * k < n; ++k) put(x, n - k, conjugate(at(x, k)));
  }

  static void store_lines(const Pass& s, const Block& block, const T* x) {
    const std::int64_t n = s.plan.length;
    const bool halved = s.plan.half_roots != nullptr;
    if (s.line == FourierLine::Complex) return store_pairs(s, block, s.to_length, x);
    if (s.line == FourierLine::FromHalf && halved) return store_pairs(s, block, n, x);
    if (s.line == FourierLine::FromHalf) {
      for (int w = 0; w < block.count; ++w) {
        T* to = s.to + block.outer[w] * n;
        for (std::int64_t j = 0; j < n; ++j) to[j] = x[2 * j * kWidth + w] * s.scale;
      }
      return;
    }
    for (std::int64_t k = 0; k < s.to_length; ++k) {
      const bool end = k == 0 || (halved && k == n);
      const T factor = end ? s.scale : s.scale * s.middle;
      const Complex z = scaled(halved ? unfold(s.plan, x, k) : at(x, k), factor);
      for (int w = 0; w < block.count; ++w) {
        T* to = s.to + 2 * (block.outer[w] * s.to_length + k);
        to[0] = z.re[w];
        to[1] = z.im[w];
      }
    }
  }
  // The other way of fold_half, element k of h: (z[k] + conj z[m - k]) / 2 - i w^k (z[k] - conj z[m - k]) / 2.
  LOCKSTEP_INLINE static Complex unfold(const Plan& plan, const T* z, std::int64_t k) {
    const std::int64_t m = plan.length;
    const Complex a = at(z, k == m ? 0 : k), b = conjugate(at(z, k == 0 ? 0 : m - k));
    const Complex turned = times_i(times(difference(a, b), plan.half_roots + 2 * k));
    return scaled(difference(sum(a, b), turned), T(0.5));
  }

  static void store_pairs(const Pass& s, const Block& block, std::int64_t length, const T* x) {
    const bool together = block.count == kWidth && block.outer[0] == block.outer[kWidth - 1];
    T* const first = s.to + 2 * (block.outer[0] * length * s.inner + block.index[0]);
    const std::int64_t kept = length < s.plan.length ? length : 2 * length;
    for (std::int64_t e = 0; together && e < length; ++e) {
      const T* from = x + 2 * place(e, kept, s.plan.length) * kWidth;
      T* to = first + 2 * e * s.inner;
      for (int w = 0; w < kWidth; ++w) {
        to[2 * w] = from[w] * s.scale;
        to[2 * w + 1] = from[kWidth + w] * s.scale;
      }
    }
    for (int w = 0; !together && w < block.count; ++w) {
      T* to = s.to + 2 * (block.outer[w] * length * s.inner + block.index[w]);
      for (std::int64_t e = 0; e < length; ++e, to += 2 * s.inner) {
        const T* from = x + 2 * place(e, kept, s.plan.length) * kWidth + w;
        to[0] = from[0] * s.scale;
        to[1] = from[kWidth] * s.scale;
      }
    }
  }
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
