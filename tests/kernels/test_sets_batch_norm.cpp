// Batch norm of every set against f64: training, the same again for backward, given statistics, and the gradients, with
// every epilogue, over channels that fill no block, single pixels, one sample and none.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lockstep/ops/batch_norm2d.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

using Scale = Tolerance::Scale;
constexpr double kEpsilon = 1e-5;
const std::vector<Epilogue> kEpilogues{{}, {.relu = true}, {.residual = true}, {.residual = true, .relu = true}};
const std::vector<Shape> kShapes{{3, 17, 5, 7}, {1, 16, 9, 8}, {5, 3, 1, 2}, {4, 5, 1, 1}, {2, 32, 4, 4}};

// Two clouds around -0.5 and 1.5, so that no channel's deviation is small, and its mean is not 0.
Tensor two_clouds(const Shape& shape) {
  Tensor t = random_values(shape, 1);
  double side = 0;
  for (double& v : t.data<double>()) {
    v = static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(v / 2 - 0.5 + 2 * side))));
    side = 1 - side;
  }
  return t;
}

Tensor positive(const Shape& shape, std::uint64_t key) {
  Tensor t = random_values(shape, key);
  for (double& v : t.data<double>()) v = v < 0 ? 0.5 - v : 0.5 + v;
  return t;
}

// The first `images` inputs are activations, the others per channel, but for a residual at the end. Partial sums and
// the cancellation of the mean cost a few roundings per sample of a channel.
Case make_case(std::string name, std::shared_ptr<const Op> op, std::vector<Tensor> inputs, std::size_t images) {
  const Shape& x = inputs[0].shape();
  name += " " + x.str() + " " + op->attributes();
  Case c{.name = std::move(name),
         .op = std::move(op),
         .inputs = std::move(inputs),
         .activation = {},
         .tolerance = {32 + 2 * static_cast<double>(x[0] * x[2] * x[3]), Scale::Largest}};
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    c.activation.push_back(i < images || c.inputs[i].shape() == c.inputs[0].shape());
  return c;
}

Case training(const Shape& x, const Epilogue& e) {
  const Shape channels{x[1]};
  auto inputs = list(two_clouds(x), random_values(channels, 2), random_values(channels, 3));
  if (e.residual) inputs.push_back(random_values(x, 4));
  return make_case("batch_norm2d", std::make_shared<BatchNorm2dOp>(kEpsilon, e), std::move(inputs), 1);
}

void expect_every_set(const std::vector<std::string>& seen, const Epilogue& e) {
  EXPECT_TRUE(any_named(seen, "generic"));
  EXPECT_TRUE(any_named(seen, "native"));
  EXPECT_EQ(any_named(seen, "bnorm"), kernels::has_onednn() && e == Epilogue{}) << "oneDNN's";
}

TEST(KernelSets, BatchNormInTraining) {
  for (const Shape& x : kShapes) {
    for (const Epilogue& e : kEpilogues) expect_every_set(expect_offers_agree(training(x, e)), e);
  }
  expect_offers_agree(training({0, 16, 4, 4}, {}));
}

TEST(KernelSets, BatchNormAgainForBackward) {
  for (const Shape& x : kShapes) {
    for (const Epilogue& e : kEpilogues) {
      Case c = training(x, e);
      std::vector<Tensor> made = reference(c);
      auto inputs =
          list(c.inputs[0].clone(), c.inputs[1].clone(), c.inputs[2].clone(), std::move(made[1]), std::move(made[2]));
      if (e.residual) inputs.push_back(c.inputs[3].clone());
      expect_offers_agree(
          make_case("batch_norm2d_normalise", std::make_shared<BatchNorm2dNormaliseOp>(e), std::move(inputs), 1));
    }
  }
}

TEST(KernelSets, BatchNormGradient) {
  for (const Shape& x : kShapes) {
    for (const Epilogue& e : kEpilogues) {
      Case forward = training(x, e);
      std::vector<Tensor> made = reference(forward);
      auto inputs = list(forward.inputs[0].clone(), random_values(x, 5), forward.inputs[1].clone(), std::move(made[1]),
                         std::move(made[2]));
      // y only tells its sign, so any value that bf16 can hold will do.
      if (e.relu) inputs.push_back(e.residual ? random_values(x, 6) : forward.inputs[2].clone());
      const bool may_add = e.relu && e.residual;
      auto of_a_sum = list();
      for (const Tensor& t : inputs) of_a_sum.push_back(t.clone());
      of_a_sum.push_back(random_values(x, 5));  // of dy and -dy / 2, which bf16 adds without rounding
      for (double& v : of_a_sum.back().data<double>()) v *= -0.5;
      const auto gradient = [&](bool adds, std::vector<Tensor> arrays) {
        return make_case("batch_norm2d_gradient", std::make_shared<BatchNorm2dGradientOp>(e, adds), std::move(arrays),
                         2);
      };
      expect_every_set(expect_offers_agree(gradient(false, std::move(inputs))), e);
      if (may_add) expect_every_set(expect_offers_agree(gradient(true, std::move(of_a_sum))), e);
    }
  }
}

TEST(KernelSets, BatchNormWithGivenStatistics) {
  for (const Shape& x : kShapes) {
    const Shape channels{x[1]};
    const auto statistics = [&](std::vector<Tensor> inputs) {
      inputs.push_back(random_values(channels, 7));
      inputs.push_back(positive(channels, 8));
      return inputs;
    };
    for (const Epilogue& e : kEpilogues) {
      auto inputs = statistics(list(two_clouds(x), random_values(channels, 2), random_values(channels, 3)));
      if (e.residual) inputs.push_back(random_values(x, 4));
      expect_offers_agree(make_case("batch_norm2d_inference", std::make_shared<BatchNorm2dInferenceOp>(kEpsilon, e),
                                    std::move(inputs), 1));
    }
    expect_offers_agree(make_case("batch_norm2d_inference_gradient",
                                  std::make_shared<BatchNorm2dInferenceGradientOp>(kEpsilon),
                                  statistics(list(two_clouds(x), random_values(x, 5), random_values(channels, 2))), 2));
  }
}

TEST(KernelSets, BatchNormIsOurOwnUnlessAskedFor) {
  const Shape x{4, 32, 8, 8};
  const Type image{x, DType::F32}, channels{Shape{32}, DType::F32};
  const BatchNorm2dOp op(kEpsilon);
  const std::vector<Type> inputs{image, channels, channels};
  kernels::KernelRequest request{&op, inputs, op.infer("test", inputs)};
  const std::vector<Layout> offered{Layout::channels_blocked(x, 16), {}, {}};
  const auto first = [&] { return kernels::kernel_registry().offer(request, offered).implementation; };
  EXPECT_TRUE(first().starts_with("native")) << first();
#if defined(__x86_64__)  // for other processors oneDNN 2.6 has its reference alone, which is not on offer
  request.options.prefer = "onednn";
  EXPECT_EQ(any_named({first()}, "bnorm"), kernels::has_onednn()) << first();
#endif
}

}  // namespace
}  // namespace lockstep::sweep
