// Sums of products of spectra: the same bits at every level, whatever lies beside them.
#include <type_traits>

#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

template <class T>
class NativeSpectral : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NativeSpectral, Types);

template <class T>
std::vector<T> values(std::int64_t n, std::uint64_t seed) {
  return generic::random_values<T>(n, seed);
}

template <class T>
const kernels::native::FourierTable<T>& fourier_of(const kernels::NativeKernels& k) {
  if constexpr (std::is_same_v<T, float>) {
    return k.fourier_f32;
  } else {
    return k.fourier_f64;
  }
}

TYPED_TEST(NativeSpectral, SumsHaveTheSameBitsAtEveryLevel) {
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
