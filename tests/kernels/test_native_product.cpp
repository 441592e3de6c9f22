// Products with packed matrices, Fourier transforms and sums of spectra: the same bits at every level, whatever lies
// beside a row or line.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using kernels::native::kPanel;

template <class T>
class NativeProduct : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NativeProduct, Types);

template <class T>
std::vector<T> values(std::int64_t n, std::uint64_t seed) {
  return generic::random_values<T>(n, seed);
}

template <class T>
const kernels::native::ProductTable<T>& product_of(const kernels::NativeKernels& k) {
  if constexpr (std::is_same_v<T, float>) {
    return k.product_f32;
  } else {
    return k.product_f64;
  }
}
template <class T>
const kernels::native::FourierTable<T>& fourier_of(const kernels::NativeKernels& k) {
  if constexpr (std::is_same_v<T, float>) {
    return k.fourier_f32;
  } else {
    return k.fourier_f64;
  }
}

TYPED_TEST(NativeProduct, AddsOneProductAfterTheOther) {
  using T = TypeParam;
  for (const std::int64_t rows : {0, 1, 5, 6, 8, 9, 19}) {
    for (const std::int64_t depth : {0, 1, 37}) {
      const std::int64_t panels = 2, a_stride = depth + 3, c_stride = panels * kPanel + 1;
      const auto a = values<T>(rows * a_stride + 1, 1), b = values<T>(panels * depth * kPanel + 1, 2);
      const auto start = values<T>(rows * c_stride + 1, 3);
      std::vector<T> want = start;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < panels * kPanel; ++j) {
          T& total = want[static_cast<std::size_t>(r * c_stride + j)];
          for (std::int64_t k = 0; k < depth; ++k)
            total = std::fma(a[static_cast<std::size_t>(r * a_stride + k)],
                             b[static_cast<std::size_t>((j / kPanel * depth + k) * kPanel + j % kPanel)], total);
        }
      }
      for_levels([&](const kernels::NativeKernels& kernels) {
        std::vector<T> c = start;
        product_of<T>(kernels).add({.rows = rows,
                                    .depth = depth,
                                    .panels = panels,
                                    .a = a.data(),
                                    .a_stride = a_stride,
                                    .b = b.data(),
                                    .c = c.data(),
                                    .c_stride = c_stride});
        EXPECT_EQ(c, want) << rows << " rows, depth " << depth;
      });
    }
  }
}

TYPED_TEST(NativeProduct, SumsOfSpectraHaveTheSameBitsAtEveryLevel) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 2, 3, 8, 37, 64}) {
    for (const bool conjugate_a : {false, true}) {
      for (const bool conjugate_b : {false, true}) {
        const std::int64_t terms = 3, a_stride = n + 2, b_stride = 2 * n;
        const auto a = values<T>(2 * terms * a_stride, 4), b = values<T>(2 * terms * b_stride, 5);
        std::vector<T> want(static_cast<std::size_t>(2 * n));
        for (std::int64_t k = 0; k < n; ++k) {
          for (std::int64_t i = 0; i < terms; ++i) {
            const T* u = a.data() + 2 * (i * a_stride + k);
            const T* v = b.data() + 2 * (i * b_stride + k);
            const T ui = conjugate_a ? -u[1] : u[1], vi = conjugate_b ? -v[1] : v[1];
            want[static_cast<std::size_t>(2 * k)] += u[0] * v[0] - ui * vi;
            want[static_cast<std::size_t>(2 * k + 1)] += u[0] * vi + ui * v[0];
          }
        }
        for_levels([&](const kernels::NativeKernels& kernels) {
          auto y = std::vector<T>(want.size() + 1, T(7));
          fourier_of<T>(kernels).sum({.n = n,
                                      .terms = terms,
                                      .a = a.data(),
                                      .a_stride = a_stride,
                                      .conjugate_a = conjugate_a,
                                      .b = b.data(),
                                      .b_stride = b_stride,
                                      .conjugate_b = conjugate_b,
                                      .y = y.data()});
          EXPECT_EQ(y.back(), T(7));
          y.pop_back();
          EXPECT_EQ(y, want) << n << " numbers";
        });
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::native
