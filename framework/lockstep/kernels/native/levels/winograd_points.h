// Winograd's transforms for 3x3 convolutions. F(m, 3) computes m outputs of a 1-D convolution from m + 2 products, as a
// product of polynomials that is evaluated and interpolated at m + 2 points (Toom-Cook: S. Winograd, Arithmetic
// Complexity of Computations, 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016):
//   y = A^T ((G g) * (B^T x))
// with, for a finite point p, N_p = the product of p - q over the other finite points q:
//   row p of G:   (1, p, p^2) / N_p               infinity: (0, 0, 1)
//   row p of A:   (1, p, p^2, ..., p^(m - 1))     infinity: (0, ..., 0, 1)
//   row p of B^T: the coefficients of the product of (x - q) over the other finite points; infinity: over all of them.
// In two dimensions every matrix is applied along columns and rows. The transpose of the same identity gives the
// gradient by the weights, dg = G^T ((B^T x) * (A dy)). F(4, 3) takes the points 0, +-5/8, +-3/2 and infinity: their
// powers are exact in f32, and the largest error is a quarter of that of the usual points 0, +-1, +-2 (Barabasz et al.,
// Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks, 2020, compare points).
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

LOCKSTEP_INLINE NativeF32 multiply_add(float k, NativeF32 x, NativeF32 y) {
  return multiply_add(NativeF32{} + k, x, y);
}

constexpr float rounded(double x) { return static_cast<float>(x); }

// Points 0, 1, -1 and infinity.
struct WinogradF2 {
  static constexpr int kSize = 2, kPlanes = 4;
  // y = B^T x
  LOCKSTEP_INLINE static void input(const NativeF32* x, NativeF32* y) {
    y[0] = x[0] - x[2];
    y[1] = x[1] + x[2];
    y[2] = x[2] - x[1];
    y[3] = x[3] - x[1];
  }
  // y = A^T m
  LOCKSTEP_INLINE static void output(const NativeF32* m, NativeF32* y) {
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = (m[1] - m[2]) + m[3];
  }
  // z = A y
  LOCKSTEP_INLINE static void slopes(const NativeF32* y, NativeF32* z) {
    z[0] = y[0];
    z[1] = y[0] + y[1];
    z[2] = y[0] - y[1];
    z[3] = y[1];
  }
  // u = G g
  LOCKSTEP_INLINE static void weights(const NativeF32* g, NativeF32* u) {
    const NativeF32 even = 0.5F * (g[0] + g[2]), odd = 0.5F * g[1];
    u[0] = g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = g[2];
  }
  // g = G^T u
  LOCKSTEP_INLINE static void gradient(const NativeF32* u, NativeF32* g) {
    const NativeF32 even = 0.5F * (u[1] + u[2]), odd = 0.5F * (u[1] - u[2]);
    g[0] = u[0] + even;
    g[1] = odd;
    g[2] = even + u[3];
  }
};

// Points 0, a, -a, b, -b and infinity. N_0 = a^2 b^2, N_a = N_-a = 2 a^2 (a^2 - b^2), N_b = N_-b = 2 b^2 (b^2 - a^2).
struct WinogradF4 {
  static constexpr int kSize = 4, kPlanes = 6;
  static constexpr double kA = 0.625, kB = 1.5, kA2 = kA * kA, kB2 = kB * kB;
  static constexpr double kInverseA = 1 / (2 * kA2 * (kA2 - kB2)), kInverseB = 1 / (2 * kB2 * (kB2 - kA2));
  // NOLINTBEGIN(readability-identifier-naming): the names of the formulas above
  static constexpr float a = rounded(kA), b = rounded(kB), a2 = rounded(kA2), b2 = rounded(kB2), a3 = rounded(kA2 * kA),
                         b3 = rounded(kB2 * kB), product = rounded(kA2 * kB2), sum = rounded(kA2 + kB2);
  static constexpr float g0 = rounded(1 / (kA2 * kB2)), ga = rounded(kInverseA), ga1 = rounded(kA * kInverseA),
                         ga2 = rounded(kA2 * kInverseA), gb = rounded(kInverseB), gb1 = rounded(kB * kInverseB),
                         gb2 = rounded(kB2 * kInverseB);
  // NOLINTEND(readability-identifier-naming)

  LOCKSTEP_INLINE static void input(const NativeF32* x, NativeF32* y) {
    y[0] = multiply_add(-sum, x[2], multiply_add(product, x[0], x[4]));
    const NativeF32 even_a = multiply_add(-b2, x[2], x[4]), odd_a = multiply_add(-b2, x[1], x[3]);
    y[1] = multiply_add(a, odd_a, even_a);
    y[2] = multiply_add(-a, odd_a, even_a);
    const NativeF32 even_b = multiply_add(-a2, x[2], x[4]), odd_b = multiply_add(-a2, x[1], x[3]);
    y[3] = multiply_add(b, odd_b, even_b);
    y[4] = multiply_add(-b, odd_b, even_b);
    y[5] = multiply_add(-sum, x[3], multiply_add(product, x[1], x[5]));
  }
  LOCKSTEP_INLINE static void output(const NativeF32* m, NativeF32* y) {
    const NativeF32 even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + (even_a + even_b);
    y[1] = multiply_add(b, odd_b, a * odd_a);
    y[2] = multiply_add(b2, even_b, a2 * even_a);
    y[3] = multiply_add(b3, odd_b, multiply_add(a3, odd_a, m[5]));
  }
  LOCKSTEP_INLINE static void slopes(const NativeF32* y, NativeF32* z) {
    z[0] = y[0];
    const NativeF32 even_a = multiply_add(a2, y[2], y[0]), odd_a = multiply_add(a2, y[3], y[1]);
    z[1] = multiply_add(a, odd_a, even_a);
    z[2] = multiply_add(-a, odd_a, even_a);
    const NativeF32 even_b = multiply_add(b2, y[2], y[0]), odd_b = multiply_add(b2, y[3], y[1]);
    z[3] = multiply_add(b, odd_b, even_b);
    z[4] = multiply_add(-b, odd_b, even_b);
    z[5] = y[3];
  }
  LOCKSTEP_INLINE static void weights(const NativeF32* g, NativeF32* u) {
    u[0] = g0 * g[0];
    const NativeF32 even_a = multiply_add(ga2, g[2], ga * g[0]), odd_a = ga1 * g[1];
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    const NativeF32 even_b = multiply_add(gb2, g[2], gb * g[0]), odd_b = gb1 * g[1];
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
  }
  LOCKSTEP_INLINE static void gradient(const NativeF32* u, NativeF32* g) {
    const NativeF32 even_a = u[1] + u[2], odd_a = u[1] - u[2], even_b = u[3] + u[4], odd_b = u[3] - u[4];
    g[0] = multiply_add(g0, u[0], multiply_add(gb, even_b, ga * even_a));
    g[1] = multiply_add(gb1, odd_b, ga1 * odd_a);
    g[2] = multiply_add(gb2, even_b, multiply_add(ga2, even_a, u[5]));
  }
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
