// A NaN must not get lost in the ReLU of a fused product: a diverged training shows it in its loss. PyTorch's ReLU
// keeps it too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "lockstep/nn/layers.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/plan/compiled_model.h"
#include "tests/kernels/sweep.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// All offers for the op, f32 and bf16; run_offer() sees to the padding. `reached` tells which outputs the NaN reaches.
template <class Reached>
void expect_nan(const Op& op, const std::vector<Tensor>& inputs, const std::vector<bool>& activation,
                const Reached& reached) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    kernels::KernelRequest request{.op = &op, .inputs = {}, .outputs = {}};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      request.inputs.push_back({inputs[i].shape(), activation[i] ? dtype : DType::F32});
    request.outputs = op.infer("test", request.inputs);
    for (const kernels::KernelOffer& offer :
         kernels::kernel_registry().offers(request, std::vector<Layout>(inputs.size()))) {
      SCOPED_TRACE(std::string(op.name()) + " " + op.attributes() + " in " + std::string(name_of(dtype)) + " by " +
                   offer.implementation);
      const sweep::Made made = sweep::run_offer(request, offer, inputs);
      const auto values = made.outputs[0].data<double>();
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) wrong += std::isnan(values[i]) != reached(i) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << "of " << values.size() << " elements";
    }
  }
}

// The NaN is in channel 0 of the second image at pixel 5. No output channels of padding here, which NaN * 0 would
// reach; that they are 0 with an epilogue is seen in the sweep over convolutions.
TEST(Nan, PassesThroughFusedConvolutions) {
  for (const std::int64_t channels : {17, 32}) {
    const Shape x{2, channels, 8, 8};
    for (const Epilogue e : {Epilogue{.relu = true}, Epilogue{.residual = true, .relu = true}}) {
      auto inputs = sweep::list(sweep::random_values(x, 1), sweep::random_values({32, channels, 1, 1}, 2),
                                sweep::random_values({32}, 3));
      if (e.residual) inputs.push_back(sweep::random_values({2, 32, 8, 8}, 4));
      inputs[0].data<double>()[static_cast<std::size_t>(channels) * 64 + 5] = kNan;
      expect_nan(ConvolutionOp(Conv2dOptions{}, e), inputs, {true, false, false, true},
                 [&](std::size_t i) { return i >= 32 * 64 && i % 64 == 5; });
    }
  }
}

TEST(Nan, PassesThroughFusedLinearLayers) {
  auto inputs =
      sweep::list(sweep::random_values({3, 20}, 1), sweep::random_values({17, 20}, 2), sweep::random_values({17}, 3));
  inputs[0].data<double>()[20 + 4] = kNan;  // of sample 1
  expect_nan(LinearOp(true), inputs, {true, false, false}, [](std::size_t i) { return i / 17 == 1; });
}

class ConvNet : public nn::Module {
 public:
  plan::Traced operator()(const plan::Inputs& in) const {
    return {.prediction = relu(fc_(flatten(relu(conv_(in["image"])))))};
  }

 private:
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 3, .out = 20, .kernel = 3, .padding = 1}};
  nn::Child<nn::Linear> fc_{this, "fc", {.in = 20 * 36, .out = 9}};
};

// The nodes that fusion makes of convolution, bias and ReLU, and of a linear layer and ReLU.
TEST(Nan, PassesThroughAPlan) {
  const ConvNet net;
  for (const bool bf16 : {false, true}) {
    plan::CompiledModel model(net.named_parameters(), [&](const plan::Inputs& in) { return net(in); },
                              {.dtype = DType::F32}, {.bf16 = bf16});
    plan::Plan& plan = model.plan(Mode::Eval, {{"image", {Shape{2, 3, 6, 6}, DType::F32}}});
    ASSERT_TRUE(std::ranges::none_of(plan.steps(), [](const plan::PlanStep& s) {
      return s.op->attributes() == "relu";
    })) << plan.describe();
    auto* const image = static_cast<float*>(plan.input("image"));
    std::fill_n(image, 2 * 3 * 36, 0.25f);
    image[3 * 36 + 7] = static_cast<float>(kNan);  // of sample 1
    plan.run();
    const Tensor y = plan.prediction().to(DType::F32);
    for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(std::isnan(y.data<float>()[i]), i >= 9) << i;
  }
}

}  // namespace
}  // namespace lockstep
