// The pointwise kernels: primitives of f32 and f64 against long double or the table's own values, the same bits at
// every level of instructions, and expressions of several functions.
#include "lockstep/kernels/native/pointwise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "lockstep/ops/pointwise/function.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using pointwise::Expression;
using pointwise::Function;
using pointwise::Scalar;

Expression expression_of(const Function& f) {
  Expression e;
  std::vector<Scalar> inputs;
  for (int k = 0; k < f.operands; ++k) inputs.push_back(e.input(k));
  e.set_result(e.apply(f, inputs));
  return e;
}

template <class T>
std::vector<T> run(const Expression& e, const std::vector<std::vector<T>>& inputs,
                   const kernels::NativeKernels& kernels) {
  const auto n = static_cast<std::int64_t>(inputs[0].size());
  const std::vector<Shape> shapes(inputs.size(), Shape{n});
  const DType dtype = sizeof(T) == 8 ? DType::F64 : sizeof(T) == 4 ? DType::F32 : DType::BF16;
  kernels::native::PointwiseKernel kernel(e, shapes, Shape{n}, n, dtype, kernels);
  std::vector<const void*> in;
  for (const auto& v : inputs) in.push_back(v.data());
  std::vector<T> y(inputs[0].size());
  void* out = y.data();
  kernel.run({in.data(), &out, nullptr});
  return y;
}

// Numbers of all sizes and signs, and the special ones.
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t key) {
  RandomStream random(key, 6);
  const T inf = std::numeric_limits<T>::infinity();
  std::vector<T> x{0, static_cast<T>(-0.0), inf, -inf, std::numeric_limits<T>::quiet_NaN(), 1, -1, T(1e30), T(-1e-30)};
  while (static_cast<std::int64_t>(x.size()) < n) {
    const double size = std::exp(random.uniform(-20, 20));
    x.push_back(static_cast<T>(random.uniform(-1, 1) * (x.size() % 3 == 0 ? size : 4)));
  }
  std::rotate(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(key), x.end());
  return x;
}

template <class T>
class PointwiseKernels : public ::testing::Test {};
using WideTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PointwiseKernels, WideTypes);

TYPED_TEST(PointwiseKernels, AreTheTablesFunctionsAtEveryLevel) {
  using T = TypeParam;
  for (const Function& f : pointwise::functions()) {
    SCOPED_TRACE(f.name);
    std::vector<std::vector<T>> inputs;
    for (int k = 0; k < f.operands; ++k) inputs.push_back(numbers<T>(3001, static_cast<std::uint64_t>(k)));
    const Expression e = expression_of(f);
    std::vector<T> first;
    for_levels([&](const kernels::NativeKernels& kernels) {
      std::vector<T> y = run(e, inputs, kernels);
      for (std::size_t i = 0; i < y.size(); ++i) {
        std::vector<double> x;
        for (const auto& v : inputs) x.push_back(static_cast<double>(v[i]));
        const double want = e.at(x);
        // A formula of several functions may lose digits of its terms, which here are as large as the operand at most.
        const double size = f.value != nullptr ? std::max(std::abs(want), 2 * std::abs(x[0])) : std::abs(want);
        const double unit = (f.value != nullptr ? 4 : 1) * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                            std::max(size, static_cast<double>(std::numeric_limits<T>::min()));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(y[i])) << i;
          y[i] = 0;  // which NaN it is depends on the order of a product's operands
        } else if (std::isinf(static_cast<T>(want))) {
          ASSERT_EQ(y[i], static_cast<T>(want)) << i;
        } else {
          ASSERT_NEAR(static_cast<double>(y[i]), want, unit) << "element " << i << " of " << x[0];
        }
      }
      if (first.empty()) first = y;
      ASSERT_TRUE(generic::same_bits(y, first)) << "bits differ from the first level's";
    });
  }
}

TYPED_TEST(PointwiseKernels, WorkOutExpressionsInBlocks) {
  using T = TypeParam;
  Expression e;
  const Scalar a = e.input(0), b = e.input(1);
  e.set_result(pointwise::apply("tanh", {a * b + 0.5}) - pointwise::apply("square", {a}) / (2 + b * b));
  EXPECT_EQ(e.str(), "subtract(tanh(add(multiply(a, b), 0.5)), divide(square(a), add(2, multiply(b, b))))");
  for (const std::int64_t n : {1, 511, 512, 513, 100003}) {
    RandomStream random(4, 5);
    std::vector<std::vector<T>> inputs(2, std::vector<T>(static_cast<std::size_t>(n)));
    for (auto& v : inputs) std::ranges::generate(v, [&] { return static_cast<T>(random.uniform(-2, 2)); });
    for_levels([&](const kernels::NativeKernels& kernels) {
      const std::vector<T> y = run(e, inputs, kernels);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double x[] = {static_cast<double>(inputs[0][i]), static_cast<double>(inputs[1][i])};
        ASSERT_NEAR(static_cast<double>(y[i]), e.at(x), 16 * std::numeric_limits<T>::epsilon());
      }
    });
  }
}

TEST(PointwiseBf16, IsF32RoundedOnce) {
  Expression e;
  const Scalar a = e.input(0);
  e.set_result(pointwise::apply("exp", {-(a * a)}) * a);
  std::vector<float> x(1003);
  RandomStream random(4, 5);
  std::ranges::generate(
      x, [&] { return to_float(from_float<kernels::native::Bf16>(static_cast<float>(random.uniform(-2, 2)))); });
  std::vector<kernels::native::Bf16> half;
  for (const float v : x) half.push_back(from_float<kernels::native::Bf16>(v));
  for_levels([&](const kernels::NativeKernels& kernels) {
    const std::vector<float> wide = run<float>(e, {x}, kernels);
    const std::vector<kernels::native::Bf16> narrow = run<kernels::native::Bf16>(e, {half}, kernels);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(narrow[i], from_float<kernels::native::Bf16>(wide[i]));
  });
}

// The padding of a blocked layout stays 0 through an expression only if no value of the other inputs changes it.
// C++ leaves it to the compiler which operand of a product is added first.
TEST(PointwiseExpression, IsOrderedByItsOperands) {
  const auto text_of_slope = [](bool right_first) {
    Expression e;
    const Scalar x = e.input(0);
    Scalar left, right;
    if (right_first) right = x * x;
    left = pointwise::apply("tanh", {x});
    if (!right_first) right = x * x;
    e.set_result(left * right);
    const Expression ordered = e.ordered();
    Expression slope;
    const Scalar at = slope.input(0);
    slope.set_result(differentiate(ordered, std::span(&at, 1), {}, slope.input(1), 0));
    return slope.str();
  };
  EXPECT_EQ(text_of_slope(false), text_of_slope(true));
}

TEST(PointwiseExpression, KeepsZeroWhateverTheOtherInputsAre) {
  const auto keeps = [](Scalar (*formula)(Scalar a, Scalar b, Scalar c), const std::vector<bool>& zero) {
    Expression e;
    const Scalar a = e.input(0), b = e.input(1), c = e.input(2);
    e.set_result(formula(a, b, c));
    std::vector<int> kept;
    std::vector<bool> of_kept;
    const Expression compact = e.compact(kept);
    for (const int k : kept) of_kept.push_back(zero[static_cast<std::size_t>(k)]);
    return compact.keeps_zero(of_kept);
  };
  const std::vector<bool> first{true, false, false}, two{true, true, false};
  for (const char* name : {"relu", "gelu", "silu", "tanh"})
    EXPECT_TRUE(expression_of(pointwise::function(name)).keeps_zero({true})) << name;
  EXPECT_TRUE(keeps([](Scalar a, Scalar, Scalar) { return a * 1.25; }, first));
  EXPECT_TRUE(keeps([](Scalar a, Scalar b, Scalar) { return pointwise::apply("relu", {a + b}); }, two));
  EXPECT_TRUE(keeps([](Scalar a, Scalar b, Scalar) { return pointwise::apply("gate", {b, a}); }, first));
  EXPECT_FALSE(keeps([](Scalar a, Scalar b, Scalar) { return a + b; }, first));
  EXPECT_FALSE(
      keeps([](Scalar a, Scalar b, Scalar) { return a * pointwise::apply("exp", {b}); }, first));  // 0 * infinity
  EXPECT_FALSE(keeps([](Scalar a, Scalar b, Scalar) { return a * pointwise::apply("abs", {b}); }, first));  // the same
  EXPECT_FALSE(keeps([](Scalar a, Scalar b, Scalar c) { return a + (b - c) * (b - c); }, first));  // 0 where b is c
}

TEST(PointwiseProgram, TakesFewRegisters) {
  Expression e;
  Scalar sum = e.input(0);
  for (int i = 0; i < 50; ++i) sum = pointwise::apply("tanh", {sum}) + 0.25 * e.input(i % 3);
  e.set_result(sum);
  const kernels::PointwiseProgram program(e);
  EXPECT_LE(program.registers(), 3 + 2);
  EXPECT_EQ(program.instructions().back().code, pointwise::Code::Add);
  EXPECT_TRUE(kernels::PointwiseProgram::fits(e));
  for (int i = 0; i < 20; ++i) sum = sum + e.input(i);
  e.set_result(sum);
  EXPECT_FALSE(kernels::PointwiseProgram::fits(e)) << "too many inputs";
}

TEST(PointwiseProgram, OfManyRegistersTakesShorterBlocks) {
  Expression e;
  Scalar sum = e.input(0);
  for (int i = 1; i < 150; ++i) sum = sum + (0.25 + i) * e.input(i % 5);
  e.set_result(sum);
  EXPECT_GT(kernels::PointwiseProgram(e).needed(), 100);
  std::vector<std::vector<double>> inputs;
  for (std::uint64_t k = 0; k < 5; ++k) inputs.push_back(generic::random_values<double>(3001, k));
  const std::vector<double> y = run(e, inputs, kernels::native_kernels());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x[] = {inputs[0][i], inputs[1][i], inputs[2][i], inputs[3][i], inputs[4][i]};
    ASSERT_EQ(y[i], e.at(x));
  }
  for (int i = 150; i < 400; ++i) sum = sum + (0.25 + i) * e.input(i % 5);
  e.set_result(sum);
  EXPECT_THROW(run(e, inputs, kernels::native_kernels()), Error);
}

}  // namespace
}  // namespace lockstep::native
