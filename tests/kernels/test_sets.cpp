// Every kernel of every set against f64: linear layers and products, pooling, element-wise functions, softmax, casts
// and reorders over odd sizes, channels that fill no block, one sample and none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/ops/cast.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reorder.h"
#include "lockstep/ops/softmax.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

using Scale = Tolerance::Scale;

TEST(KernelSets, NoSamples) {
  const Shape x{0, 16, 8, 8}, w{32, 16, 3, 3}, y{0, 32, 8, 8};
  const Conv2dOptions o{.padding_h = 1, .padding_w = 1};
  expect_offers_agree({"conv2d",
                       std::make_shared<ConvolutionOp>(o),
                       list(random_values(x, 1), random_values(w, 2)),
                       {true, false},
                       {}});
  expect_offers_agree({"conv2d_backward_weights",
                       std::make_shared<ConvolutionBackwardWeightsOp>(o, w, true),
                       list(random_values(x, 1), random_values(y, 2)),
                       {true, true},
                       {}});
  expect_offers_agree({"linear_backward_weights",
                       std::make_shared<LinearBackwardWeightsOp>(true),
                       list(random_values({0, 7}, 1), random_values({0, 5}, 2)),
                       {true, true},
                       {}});
  expect_offers_agree({"softmax", std::make_shared<SoftmaxOp>(), list(random_values({0, 7}, 1)), {true}, {}});
  expect_offers_agree(
      {"max_pool2d", std::make_shared<PoolOp>(Pool::Max, Pool2dOptions{}), list(random_values(x, 1)), {true}, {}});
}

TEST(KernelSets, Linear) {
  struct Size {
    std::int64_t samples, in, out;
  };
  for (const auto [n, in, out] : {Size{5, 7, 3}, {1, 17, 16}, {16, 84, 10}, {33, 64, 80}, {4, 1, 1}, {7, 130, 65}}) {
    for (const bool bias : {false, true}) {
      const std::string name = formatted("{}x{} -> {}", n, in, out);
      for (const bool relu : {false, true}) {
        Case forward{"linear " + name,
                     std::make_shared<LinearOp>(relu),
                     list(random_values({n, in}, 1), random_values({out, in}, 2)),
                     {true, false},
                     {static_cast<double>(in) + 2}};
        if (bias) forward.inputs.push_back(random_values({out}, 3)), forward.activation.push_back(false);
        expect_offers_agree(forward);
      }
      expect_offers_agree({"linear_backward_weights " + name,
                           std::make_shared<LinearBackwardWeightsOp>(bias),
                           list(random_values({n, in}, 1), random_values({n, out}, 4)),
                           {true, true},
                           {static_cast<double>(n) + 1}});
    }
    expect_offers_agree({formatted("linear_backward_data {}x{} -> {}", n, in, out),
                         std::make_shared<LinearBackwardDataOp>(),
                         list(random_values({n, out}, 4), random_values({out, in}, 2)),
                         {true, false},
                         {static_cast<double>(out) + 1}});
  }
}

TEST(KernelSets, Matmul) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::int64_t m = 13, k = 35, n = 18;
      expect_offers_agree(
          {"matmul",
           std::make_shared<MatmulOp>(ta, tb),
           list(random_values(ta ? Shape{k, m} : Shape{m, k}, 1), random_values(tb ? Shape{n, k} : Shape{k, n}, 2)),
           {true, true},
           {static_cast<double>(k)}});
    }
  }
}

std::vector<Pool2dOptions> pools() {
  return {{},
          {.kernel_h = 3, .kernel_w = 3, .padding_h = 1, .padding_w = 1},
          {.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 3, .padding_h = 1},
          {.kernel_h = 3, .kernel_w = 3, .padding_h = 1, .padding_w = 1, .ceil_mode = true},
          {.kernel_h = 3, .kernel_w = 3, .padding_h = 1, .padding_w = 1, .count_include_pad = false},
          {.kernel_h = 8, .kernel_w = 9, .stride_h = 8, .stride_w = 9}};
}

TEST(KernelSets, MaxPooling) {
  std::vector<Pool2dOptions> all = pools();
  all.push_back({.kernel_h = 3, .kernel_w = 2, .padding_h = 1, .padding_w = 1, .dilation_h = 2, .dilation_w = 3});
  for (const Pool2dOptions& o : all) {
    for (const std::int64_t channels : {3, 16, 17}) {
      const Shape x{2, channels, 8, 9};
      Case forward{"max_pool2d", std::make_shared<PoolOp>(Pool::Max, o), list(random_values(x, 1)), {true}, {0}};
      for (double& v : forward.inputs[0].data<double>()) v = std::round(v * 3);  // many ties
      expect_offers_agree(forward);
      std::vector<Tensor> made = reference(forward);
      // A position takes the gradients of every window it wins: at most a sum over a window.
      expect_offers_agree({"max_pool2d_gradient",
                           std::make_shared<PoolGradientOp>(Pool::Max, o, x),
                           list(random_values(made[0].shape(), 2), std::move(made[1])),
                           {true, true},
                           {static_cast<double>(o.kernel_h * o.kernel_w)}});
    }
  }
}

TEST(KernelSets, LargeWindowsKeepWidePositions) {
  const Pool2dOptions o{.kernel_h = 17, .kernel_w = 16, .stride_h = 2, .stride_w = 2, .padding_h = 2, .padding_w = 2};
  const Shape x{2, 17, 18, 19};
  Case forward{"max_pool2d", std::make_shared<PoolOp>(Pool::Max, o), list(random_values(x, 1)), {true}, {0}};
  expect_offers_agree(forward);
  std::vector<Tensor> made = reference(forward);
  ASSERT_EQ(made[1].dtype(), DType::I32);
  expect_offers_agree({"max_pool2d_gradient",
                       std::make_shared<PoolGradientOp>(Pool::Max, o, x),
                       list(random_values(made[0].shape(), 2), std::move(made[1])),
                       {true, true},
                       {64}});
}

TEST(KernelSets, AveragePooling) {
  for (const Pool2dOptions& o : pools()) {
    for (const std::int64_t channels : {3, 16, 17, 32}) {
      const Shape x{2, channels, 8, 9};
      const double window = static_cast<double>(o.kernel_h * o.kernel_w);
      Case forward{"average_pool2d",
                   std::make_shared<PoolOp>(Pool::Average, o),
                   list(random_values(x, 1)),
                   {true},
                   {window + 2}};
      expect_offers_agree(forward);
      const Shape y = reference(forward)[0].shape();
      expect_offers_agree({"average_pool2d_gradient",
                           std::make_shared<PoolGradientOp>(Pool::Average, o, x),
                           list(random_values(y, 2)),
                           {true},
                           {window + 2}});
    }
  }
}

TEST(KernelSets, GlobalAveragesOfWholeBlocksArePlain) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const Type x{Shape{2, 32, 7, 7}, DType::F32}, y{Shape{2, 32, 1, 1}, DType::F32};
  const Pool2dOptions o{.kernel_h = 7, .kernel_w = 7, .stride_h = 7, .stride_w = 7};
  const PoolOp forward(Pool::Average, o);
  const PoolGradientOp backward(Pool::Average, o, x.shape);
  const Layout blocked = Layout::channels_blocked(x.shape, 16), plain;
  const auto f = kernels::kernel_registry().offer({&forward, {x}, {y}}, std::span(&blocked, 1));
  EXPECT_EQ(f.inputs[0], blocked);
  EXPECT_TRUE(f.outputs[0].plain());
  const auto b = kernels::kernel_registry().offer({&backward, {y}, {x}}, std::span(&plain, 1));
  EXPECT_TRUE(b.inputs[0].plain());
#if defined(__x86_64__)  // oneDNN's poolings for other processors have no blocks
  EXPECT_GT(b.outputs[0].channel_block(x.shape), 1);
#endif
}

PointwiseOp pointwise_op(const pointwise::Function& f) {
  pointwise::Expression expression;
  std::vector<pointwise::Scalar> inputs;
  for (int k = 0; k < f.operands; ++k) inputs.push_back(expression.input(k));
  expression.set_result(expression.apply(f, inputs));
  return PointwiseOp(std::move(expression));
}

TEST(KernelSets, PointwiseFunctions) {
  const Shape shape{3, 17, 5, 7};
  for (const pointwise::Function& f : pointwise::functions()) {
    Case c{std::string(f.name), std::make_shared<PointwiseOp>(pointwise_op(f)), {}, {}, {4, Scale::One}};
    for (int k = 0; k < f.operands; ++k) {
      c.inputs.push_back(random_values(shape, static_cast<std::uint64_t>(k) + 1));
      for (double& v : c.inputs.back().data<double>()) v = std::max(std::abs(v), 0.125);  // for log, power, divide
      c.activation.push_back(true);
    }
    const bool reaches_8 = f.name == "divide" || f.name == "power" || f.name == "reciprocal" || f.name == "softplus";
    c.tolerance.roundings = reaches_8 ? 32 : 4;
    expect_offers_agree(c);
  }
}

TEST(KernelSets, PointwiseOperandsBroadcast) {
  const std::shared_ptr<const Op> op = std::make_shared<PointwiseOp>(pointwise_op(pointwise::function("subtract")));
  const Shape shapes[] = {{3, 17, 5, 7}, {}, {1}, {7}, {5, 1}, {17, 1, 1}, {3, 1, 1, 1}, {3, 1, 5, 1}, {1, 17, 1, 7}};
  for (const Shape& small : shapes) {
    SCOPED_TRACE(small.str());
    Case c{"subtract", op, {}, {true, true}, {2, Scale::One}};
    c.inputs = list(random_values(shapes[0], 1), random_values(small, 2));
    expect_offers_agree(c);
    c.inputs = list(random_values(small, 1), random_values(shapes[0], 2));
    expect_offers_agree(c);
    const std::vector<Tensor> got = reference(c);
    ASSERT_EQ(got[0].shape(), shapes[0]);
    const std::span<const double> a = c.inputs[0].data<double>(), b = c.inputs[1].data<double>();
    const std::span<const double> y = got[0].data<double>();
    std::int64_t at = 0;
    for (std::int64_t n = 0; n < 3; ++n) {
      for (std::int64_t k = 0; k < 17; ++k) {
        for (std::int64_t i = 0; i < 5; ++i) {
          for (std::int64_t j = 0; j < 7; ++j, ++at) {
            const std::int64_t index[] = {n, k, i, j};
            std::int64_t from = 0;
            for (int d = 0; d < small.rank(); ++d)
              from = from * small[d] + (small[d] == 1 ? 0 : index[4 - small.rank() + d]);
            ASSERT_EQ(y[static_cast<std::size_t>(at)],
                      a[static_cast<std::size_t>(from)] - b[static_cast<std::size_t>(at)]);
          }
        }
      }
    }
  }
}

// Zero padding is kept where the expression keeps zeros, and only there.
TEST(KernelSets, PaddedLayoutsAreKeptWhereZerosStayZeros) {
  const Type type{Shape{2, 17, 3, 3}, DType::F32};
  const Layout blocked = Layout::channels_blocked(type.shape, 16);
  for (const pointwise::Function& f : pointwise::functions()) {
    const PointwiseOp op = pointwise_op(f);
    const std::vector<Type> inputs(static_cast<std::size_t>(f.operands), type);
    const std::vector<Layout> offered(inputs.size(), blocked);
    const kernels::KernelOffer offer = kernels::kernel_registry().offer({&op, inputs, {type}}, offered);
    const std::vector<double> zeros(inputs.size(), 0.0);
    const double value = op.expression().at(zeros);
    EXPECT_EQ(offer.outputs[0] == blocked, value == 0.0 && !std::signbit(value)) << f.name;
  }
}

// A NaN is never lost: by no set, in no layout.
TEST(KernelSets, PointwiseFunctionsPassNanOn) {
  const Shape shape{2, 16, 2, 2};
  for (const pointwise::Function& f : pointwise::functions()) {
    if (f.operands > 1 || f.name == "sign") continue;  // whose value is 0 then
    const PointwiseOp op = pointwise_op(f);
    const Type type{shape, DType::F32};
    Tensor x(shape, DType::F64);
    std::ranges::fill(x.data<double>(), std::numeric_limits<double>::quiet_NaN());
    const kernels::KernelRequest request{&op, {type}, {type}};
    for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(request, std::vector<Layout>(1))) {
      const Made made = run_offer(request, offer, list(x.clone()));
      const auto values = made.outputs[0].data<double>();
      EXPECT_TRUE(std::ranges::all_of(values, [](double v) { return std::isnan(v); }))
          << f.name << " by " << offer.implementation;
    }
  }
}

// Values that bf16 can hold survive every way between types and layouts.
TEST(KernelSets, ReordersAndCasts) {
  const Shape shape{3, 17, 5, 7};
  const Tensor x = random_values(shape, 1);
  const auto expect_same = [&](const Op& op, DType from, DType to, const Layout& lies) {
    const kernels::KernelRequest request{&op, {{shape, from}}, {{shape, to}}};
    for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(request, std::span(&lies, 1))) {
      SCOPED_TRACE(formatted("{} {} {} to {} {} by {}", op.name(), name_of(from), lies.str(), name_of(to),
                             offer.outputs[0].str(), offer.implementation));
      EXPECT_EQ(offer.implementation.find("ref"), std::string::npos);
      const Made made = run_offer(request, offer, list(x.clone()));
      EXPECT_TRUE(std::ranges::equal(made.outputs[0].data<double>(), x.data<double>()));
    }
  };
  for (const DType from : {DType::F32, DType::BF16}) {
    for (const DType to : {DType::F32, DType::BF16}) {
      for (const std::int64_t block : {1, 8, 16}) {
        const Layout lies = Layout::channels_blocked(shape, block);
        if (from != to) expect_same(CastOp(to), from, to, lies);
        for (const std::int64_t target : {1, 8, 16})
          expect_same(ReorderOp(Layout::channels_blocked(shape, target), to), from, to, lies);
      }
    }
  }
}

TEST(KernelSets, MaxPoolingPassesNanOn) {
  const Shape shape{1, 16, 2, 2};
  const PoolOp op(Pool::Max, Pool2dOptions{});
  Tensor x(shape, DType::F64);
  x.data<double>()[2] = std::numeric_limits<double>::quiet_NaN();  // channel 0
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const Type in{shape, dtype};
    const kernels::KernelRequest request{&op, {in}, op.infer("test", std::span(&in, 1))};
    for (const Layout& offered : {Layout{}, Layout::channels_blocked(shape, 16)}) {
      for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(request, std::span(&offered, 1))) {
        const Made made = run_offer(request, offer, list(x.clone()));
        EXPECT_TRUE(std::isnan(made.outputs[0].data<double>()[0])) << offer.implementation;
        EXPECT_EQ(made.outputs[1].data<std::uint8_t>()[0], 2) << offer.implementation;
        EXPECT_EQ(made.outputs[0].data<double>()[1], 0.0) << offer.implementation;
      }
    }
  }
}

// Each kernel's exponentials are within a few units, and sums of them add their number.
TEST(KernelSets, Softmax) {
  for (const std::int64_t classes : {1, 10, 35, 100}) {
    const Shape shape{7, classes};
    Case forward{"softmax",
                 std::make_shared<SoftmaxOp>(),
                 list(random_values(shape, 1)),
                 {true},
                 {static_cast<double>(classes) + 16}};
    expect_offers_agree(forward);
    Tensor y = random_values(shape, 3);
    expect_offers_agree({"softmax_gradient",
                         std::make_shared<SoftmaxGradientOp>(),
                         list(std::move(y), random_values(shape, 2)),
                         {true, true},
                         {4 * static_cast<double>(classes) + 16, Scale::One}});
  }
}

}  // namespace
}  // namespace lockstep::sweep
