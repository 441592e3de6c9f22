// Products with portable bits are what their definition says, bit for bit; and what the registry offers for such bits.
#include "lockstep/kernels/generic/matrix_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/kernels/choice.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pool.h"
#include "tests/kernels/reference.h"

namespace lockstep {
namespace {

using kernels::generic::MatrixProduct;

// Parts of kDepth products in order of k, from zero, added in order: the definition in matrix_product.h.
template <class T>
T element(const MatrixProduct::Sizes& s, const std::vector<T>& a, const std::vector<T>& b, std::int64_t i,
          std::int64_t j, bool adds, T before) {
  const auto at = [](const std::vector<T>& values, bool transposed, std::int64_t row, std::int64_t column,
                     std::int64_t rows, std::int64_t columns) {
    return values[static_cast<std::size_t>(transposed ? column * rows + row : row * columns + column)];
  };
  T total = before;
  for (std::int64_t first = 0; first == 0 || first < s.k; first += MatrixProduct::kDepth) {
    T part = 0;
    for (std::int64_t k = first; k < std::min(s.k, first + MatrixProduct::kDepth); ++k) {
      const T x = at(a, s.transpose_a, i, k, s.m, s.k), y = at(b, s.transpose_b, k, j, s.k, s.n);
      part = sizeof(T) == 4 ? std::fma(x, y, part) : part + x * y;
    }
    total = first > 0 || adds ? total + part : part;
  }
  return total;
}

template <class T>
std::vector<T> run(const MatrixProduct::Sizes& s, const std::vector<T>& a, const std::vector<T>& b, bool adds,
                   std::vector<T> c) {
  const MatrixProduct product(MatrixProduct::Way::Portable, s);
  auto scratch = generic::unwritten<T>(product.scratch() + 1);
  product.run<T>({a.data(), s.transpose_a ? s.m : s.k}, {b.data(), s.transpose_b ? s.k : s.n}, adds, {c.data(), s.n},
                 scratch.data());
  EXPECT_TRUE(std::isnan(scratch.back())) << "written behind the scratch memory";
  return c;
}

template <class T>
void expect_defined_bits() {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Size{1, 1, 1}, {7, 33, 5}, {65, 32, 64}, {130, 70, 513}, {3, 1, 1030}, {0, 4, 3}, {4, 0, 3}, {5, 6, 0}}) {
    for (const int way : {0, 1, 2, 3}) {
      const MatrixProduct::Sizes s{.transpose_a = way % 2 == 1, .transpose_b = way / 2 == 1, .m = m, .n = n, .k = k};
      const auto a = generic::random_values<T>(m * k, 1), b = generic::random_values<T>(k * n, 2);
      const auto before = generic::random_values<T>(m * n, 3);
      for (const bool adds : {false, true}) {
        std::vector<T> want = before;
        for (std::int64_t i = 0; i < m * n; ++i) {
          auto& value = want[static_cast<std::size_t>(i)];
          value = element(s, a, b, i / n, i % n, adds, value);
        }
        const auto got = run(s, a, b, adds, adds ? before : generic::unwritten<T>(m * n));
        EXPECT_TRUE(generic::same_bits(got, want)) << m << "x" << n << "x" << k << " way " << way << " adds " << adds;
      }
    }
  }
}

TEST(MatrixProduct, HasTheBitsOfItsDefinition) {
  expect_defined_bits<float>();
  expect_defined_bits<double>();
}

TEST(MatrixProduct, ThreadsChangeNoBit) {
  const MatrixProduct::Sizes s{.transpose_a = true, .transpose_b = true, .m = 200, .n = 150, .k = 600};
  const auto a = generic::random_values<float>(s.m * s.k, 1), b = generic::random_values<float>(s.k * s.n, 2);
  generic::expect_thread_invariant([&] { return run(s, a, b, false, generic::unwritten<float>(s.m * s.n)); });
}

TEST(PortableBits, ComeFromOffersThatPromiseThem) {
  const LinearOp op;
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Type x{{8, 20}, dtype}, w{{12, 20}, dtype}, y{{8, 12}, dtype};
    kernels::KernelRequest request{&op, {x, w}, {y}};
    const std::string fast_key = kernels::choice_key(request);
    request.options.bits = kernels::KernelOptions::Bits::Portable;
    EXPECT_NE(kernels::choice_key(request), fast_key);
    const auto offers = kernels::kernel_registry().offers(request, std::vector<Layout>(2));
    EXPECT_FALSE(offers.empty());
    for (const kernels::KernelOffer& offer : offers) EXPECT_TRUE(offer.portable) << offer.implementation;
  }
}

// Convolutions of equal types and other options are measured apart, in all three directions.
TEST(ChoiceKey, OfGradientsHasTheOptions) {
  const Type x{{2, 16, 8, 8}, DType::F32}, w{{16, 16, 3, 3}, DType::F32};
  const auto keys = [&](std::int64_t reach) {
    const ConvolutionOptions options{
        .axes = {{.padding = reach, .dilation = reach}, {.padding = reach, .dilation = reach}}};
    const ConvolutionOp forward(options);
    const ConvolutionBackwardDataOp data(options, x.shape);
    const ConvolutionBackwardWeightsOp weights(options, w.shape, false);
    const PoolOptions pooling{.axes = {{.kernel = 2 * reach + 1, .stride = 1, .padding = reach},
                                       {.kernel = 2 * reach + 1, .stride = 1, .padding = reach}}};
    const PoolGradientOp pool(Pool::Average, pooling, x.shape);
    return std::array{kernels::choice_key({&forward, {x, w}, {x}}), kernels::choice_key({&data, {x, w}, {x}}),
                      kernels::choice_key({&weights, {x, x}, {w}}), kernels::choice_key({&pool, {x}, {x}})};
  };
  const auto near = keys(1), far = keys(2);
  for (std::size_t i = 0; i < near.size(); ++i) EXPECT_NE(near[i], far[i]);
}

// An op of a user whose kernel says nothing about its bits.
class SilentOp : public Op {
 public:
  std::string_view name() const override { return "test_silent"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
};

TEST(PortableBits, AreRefusedForAnOpWhoseKernelsDoNotPromiseThem) {
  kernels::register_plain_kernel("test_silent", [](const kernels::KernelRequest&, const kernels::Arguments&) {});
  const SilentOp op;
  const Type type{{4}, DType::F32};
  kernels::KernelRequest request{&op, {type}, {type}};
  request.path = "layer1.filter";
  EXPECT_FALSE(kernels::kernel_registry().offer(request, std::vector<Layout>(1)).portable);
  request.options.bits = kernels::KernelOptions::Bits::Portable;
  try {
    kernels::kernel_registry().offer(request, std::vector<Layout>(1));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* words :
         {"[test_silent] layer1.filter: ", "--bits portable", "f32", "custom", "--bits fast", "portable = true"})
      EXPECT_NE(text.find(words), std::string::npos) << words << " in " << text;
  }
  kernels::register_plain_kernel(
      "test_silent", [](const kernels::KernelRequest&, const kernels::Arguments&) {}, true);
  EXPECT_TRUE(kernels::kernel_registry().offer(request, std::vector<Layout>(1)).portable);
}

}  // namespace
}  // namespace lockstep
