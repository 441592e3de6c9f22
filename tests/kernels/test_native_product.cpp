// Products of matrices of our own: against sums in f64 over odd sizes, transposes, strides and epilogues; the same bits
// at every level and number of threads.
#include <cmath>
#include <limits>

#include "lockstep/kernels/native/matrix_product.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using kernels::native::MatrixArrays;
using kernels::native::MatrixShape;

// A product whose operands have a gap behind each row; `c` begins as `unwritten`, or as values for `add`.
template <class T>
struct Product {
  MatrixShape shape;
  std::vector<T> a, b, bias, start;

  Product(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool turned_a, bool turned_b)
      : shape(kernels::native::dense(rows, columns, depth, turned_a, turned_b)),
        bias(generic::random_values<T>(std::max(rows, columns), 3)) {
    shape.a_stride += 3, shape.b_stride += 5, shape.c_stride += 2;
    a = generic::random_values<T>((turned_a ? depth : rows) * shape.a_stride, 1);
    b = generic::random_values<T>((turned_b ? columns : depth) * shape.b_stride, 2);
    start = generic::random_values<T>(rows * shape.c_stride, 4);
  }
  T left(std::int64_t i, std::int64_t k) const {
    return a[static_cast<std::size_t>(shape.transpose_a ? k * shape.a_stride + i : i * shape.a_stride + k)];
  }
  T right(std::int64_t k, std::int64_t j) const {
    return b[static_cast<std::size_t>(shape.transpose_b ? j * shape.b_stride + k : k * shape.b_stride + j)];
  }

  enum class Form : std::uint8_t { Plain, Bias, BiasRelu, RowBias, Add };
  std::vector<T> run(const kernels::NativeKernels& kernels, Form form, std::int64_t workers) const {
    std::vector<T> c = form == Form::Add ? start : generic::unwritten<T>(shape.rows * shape.c_stride);
    std::vector<T> scratch = generic::unwritten<T>(workers * kernels::native::matrix_scratch<T>(shape) + 16);
    const auto begin = reinterpret_cast<std::uintptr_t>(scratch.data());
    T* const aligned = reinterpret_cast<T*>((begin + 63) / 64 * 64);
    kernels::native::multiply<T>(shape,
                                 {.a = a.data(),
                                  .b = b.data(),
                                  .c = c.data(),
                                  .bias = form == Form::Bias || form == Form::BiasRelu ? bias.data() : nullptr,
                                  .row_bias = form == Form::RowBias ? bias.data() : nullptr,
                                  .relu = form == Form::BiasRelu,
                                  .add = form == Form::Add},
                                 workers, aligned, kernels);
    return c;
  }

  void expect_right(const std::vector<T>& c, Form form) const {
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.c_stride; ++j) {
        const auto at = static_cast<std::size_t>(i * shape.c_stride + j);
        if (j >= shape.columns) {
          EXPECT_TRUE(form == Form::Add ? c[at] == start[at] : std::isnan(c[at])) << "wrote between rows";
          continue;
        }
        generic::Exact sum;
        if (form == Form::Bias || form == Form::BiasRelu)
          sum.add(static_cast<double>(bias[static_cast<std::size_t>(j)]));
        if (form == Form::RowBias) sum.add(static_cast<double>(bias[static_cast<std::size_t>(i)]));
        if (form == Form::Add) sum.add(static_cast<double>(start[at]));
        for (std::int64_t k = 0; k < shape.depth; ++k)
          sum.add(static_cast<double>(left(i, k)) * static_cast<double>(right(k, j)));
        if (form == Form::BiasRelu) sum.value = std::max(sum.value, 0.0);
        const double bound = 2 * static_cast<double>(shape.depth + 2) * generic::kUnit<T> * sum.magnitude;
        ASSERT_LE(std::abs(static_cast<double>(c[at]) - sum.value), bound) << "row " << i << ", column " << j;
      }
    }
  }
};

template <class T>
class NativeProduct : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NativeProduct, Types);

struct Size {
  std::int64_t rows, columns, depth;
};
std::vector<Size> sizes() {
  return {{1, 1, 1},    {1, 33, 257}, {2, 17, 3},    {3, 100, 16}, {4, 5, 33},      {5, 3, 100},    {15, 2, 17},
          {16, 16, 16}, {17, 33, 15}, {33, 1, 257},  {33, 31, 1},  {100, 257, 100}, {113, 40, 401}, {257, 100, 33},
          {6, 530, 20}, {9, 15, 800}, {20, 600, 12}, {3, 7, 0},    {0, 4, 5},       {4, 0, 5}};
}

TYPED_TEST(NativeProduct, SumsAreRightAndTheSameAtEveryLevelAndNumberOfThreads) {
  using Case = Product<TypeParam>;
  using Form = typename Case::Form;
  std::size_t number = 0;
  for (const Size s : sizes()) {
    for (int turned = 0; turned < 4; ++turned) {
      const Case c(s.rows, s.columns, s.depth, (turned & 1) != 0, (turned & 2) != 0);
      const Form form = static_cast<Form>(number++ % 5);
      SCOPED_TRACE(::testing::Message() << s.rows << "x" << s.columns << "x" << s.depth << ", transposes " << turned
                                        << ", form " << static_cast<int>(form));
      const auto want = c.run(*kernels::native::levels()[0].kernels, form, 1);
      c.expect_right(want, form);
      for_levels([&](const kernels::NativeKernels& kernels) {
        for (const int threads : {1, 2, 3}) {
          const generic::Threads scope(threads);
          EXPECT_TRUE(generic::same_bits(c.run(kernels, form, threads), want)) << threads << " threads";
        }
      });
    }
  }
}

// One product after the other, beginning with the bias.
TYPED_TEST(NativeProduct, SumsRunInTheOrderOfDepth) {
  using T = TypeParam;
  const Product<T> p(18, 35, 900, false, false);
  for_levels([&](const kernels::NativeKernels& kernels) {
    const std::vector<T> c = p.run(kernels, Product<T>::Form::Bias, 1);
    for (const std::int64_t i : {0, 17}) {
      for (const std::int64_t j : {0, 31, 34}) {
        T sum = p.bias[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < p.shape.depth; ++k) sum = std::fma(p.left(i, k), p.right(k, j), sum);
        EXPECT_EQ(c[static_cast<std::size_t>(i * p.shape.c_stride + j)], sum);
      }
    }
  });
}

// A gradient of weights with its bias, the depth in one part or in several.
TYPED_TEST(NativeProduct, GradientsOfWeightsWithTheSumsOfRows) {
  using T = TypeParam;
  for (const Size s : {Size{10, 33, 100}, Size{130, 20, 500}, Size{3, 5, 9000}, Size{2, 3, 0}}) {
    SCOPED_TRACE(::testing::Message() << s.rows << "x" << s.columns << "x" << s.depth);
    const Product<T> p(s.rows, s.columns, s.depth, true, false);
    const std::int64_t parts = kernels::native::depth_parts(s.rows, s.columns, s.depth);
    EXPECT_EQ(parts, s.depth == 9000 ? 2 : 1);
    const auto run = [&](const kernels::NativeKernels& kernels, int threads) {
      std::vector<T> c = generic::unwritten<T>(s.rows * p.shape.c_stride + s.rows);
      std::vector<T> scratch(static_cast<std::size_t>(threads * kernels::native::matrix_scratch<T>(p.shape)));
      std::vector<T> sums(static_cast<std::size_t>(parts * s.rows * s.columns));
      const generic::Threads scope(threads);
      kernels::native::multiply_in_parts<T>(
          p.shape, {.a = p.a.data(), .b = p.b.data(), .c = c.data(), .row_sums = c.data() + s.rows * p.shape.c_stride},
          threads, scratch.data(), sums.data(), kernels);
      return c;
    };
    const std::vector<T> want = run(*kernels::native::levels()[0].kernels, 1);
    p.expect_right({want.begin(), want.end() - s.rows}, Product<T>::Form::Plain);
    for (std::int64_t i = 0; i < s.rows; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.depth; ++k) sum += static_cast<double>(p.left(i, k));
      EXPECT_EQ(want[static_cast<std::size_t>(s.rows * p.shape.c_stride + i)], static_cast<T>(sum));
    }
    for_levels([&](const kernels::NativeKernels& kernels) {
      for (const int threads : {1, 2, 3}) EXPECT_TRUE(generic::same_bits(run(kernels, threads), want)) << threads;
    });
  }
}

TYPED_TEST(NativeProduct, NotANumberAndInfinityStay) {
  using T = TypeParam;
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
  for (const std::int64_t rows : {3, 20}) {
    Product<T> p(rows, 40, 50, false, true);
    p.a[static_cast<std::size_t>(p.shape.a_stride + 7)] = kNaN;
    p.a[static_cast<std::size_t>(2 * p.shape.a_stride + 7)] = kInfinity;
    for_levels([&](const kernels::NativeKernels& kernels) {
      const std::vector<T> c = p.run(kernels, Product<T>::Form::BiasRelu, 1);
      for (std::int64_t j = 0; j < 40; ++j) {
        const auto at = [&](std::int64_t row) { return c[static_cast<std::size_t>(row * p.shape.c_stride + j)]; };
        EXPECT_TRUE(std::isfinite(at(0)));
        EXPECT_TRUE(std::isnan(at(1)));
        EXPECT_EQ(at(2), p.right(7, j) > 0 ? kInfinity : T(0));
      }
    });
  }
}

}  // namespace
}  // namespace lockstep::native
