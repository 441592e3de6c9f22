// StepProfile on real plans: which steps count, and that every node that ran is there with its operations and bytes.
#include "lockstep/train/report/step_profile.h"

#include <gtest/gtest.h>

#include "lockstep/host/threads.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/ops/linear.h"
#include "tests/plan/support.h"

namespace lockstep::train {
namespace {

constexpr kernels::Peaks kPeaks{.f32_flops = 1e9, .bf16_flops = 2e9, .bytes = 1e9};

class StepProfileTest : public testing::Test {
 protected:
  plan::Plan& plan(std::int64_t batch) { return model_.plan(Mode::Eval, {{"x", {Shape{batch, 3}, DType::F32}}}); }
  void step(std::initializer_list<std::int64_t> batches) {
    profile_.begin_step();
    for (std::int64_t batch : batches) {
      plan::Plan& p = plan(batch);
      fill_input<float>(p, "x");
      profile_.begin_run(p);
      p.run();
    }
    profile_.end_step();
  }

  Parameters parameters_;
  Parameter& weight_ = parameters_.add("weight", {5, 3});
  plan::CompiledModel model_{parameters_.named(),
                             [this](const plan::Inputs& in) {
                               return plan::Traced{.prediction = linear(in["x"], in.graph().parameter(weight_))};
                             },
                             {},
                             {.kernels = {.prefer = "generic"}}};  // whose memory has no padding
  StepProfile profile_{kPeaks};
};

TEST_F(StepProfileTest, ColdStepsAreLeftOut) {
  step({4});
  step({4});
  EXPECT_EQ(profile_.result().steps, 0);
  EXPECT_TRUE(profile_.result().nodes.empty());
  for (int i = 0; i < 3; ++i) step({4});
  EXPECT_EQ(profile_.result().steps, 3);
  step({4, 7});  // 7 is new
  step({4, 7});
  EXPECT_EQ(profile_.result().steps, 3);
  step({4, 7});
  EXPECT_EQ(profile_.result().steps, 4);
}

TEST_F(StepProfileTest, NodesOfSeveralPlansAreOne) {
  for (int i = 0; i < 5; ++i) step({4, 7});
  const Profile result = profile_.result();
  ASSERT_EQ(result.steps, 3);
  ASSERT_EQ(result.nodes.size(), 1U);
  const ProfileNode& node = result.nodes[0];
  EXPECT_EQ(node.op, "linear");
  EXPECT_DOUBLE_EQ(node.sums.calls, 6);
  EXPECT_DOUBLE_EQ(node.sums.flops, 3 * 2.0 * (4 + 7) * 3 * 5);
  EXPECT_DOUBLE_EQ(node.sums.bytes, 3 * 4.0 * ((4 + 7) * (3 + 5) + 2 * 5 * 3));
  EXPECT_DOUBLE_EQ(node.sums.flops_at_peak, node.sums.flops / kPeaks.f32_flops);
  EXPECT_GT(node.sums.seconds, 0);
  EXPECT_LE(node.sums.seconds, result.seconds);
}

TEST_F(StepProfileTest, PartsBelongToTheStepAtHand) {
  for (int i = 0; i < 2; ++i) step({4});
  {
    const StepProfile::Timer between(&profile_, StepProfile::Part::Input);  // of an evaluation, say
  }
  profile_.begin_step();
  profile_.begin_run(plan(4));
  plan(4).run();
  { const StepProfile::Timer timer(&profile_, StepProfile::Part::Update); }
  profile_.end_step();
  const Profile result = profile_.result();
  ASSERT_EQ(result.parts.size(), StepProfile::kParts);
  EXPECT_EQ(result.parts[static_cast<std::size_t>(StepProfile::Part::Input)].seconds, 0);
  EXPECT_GT(result.parts[static_cast<std::size_t>(StepProfile::Part::Update)].seconds, 0);
}

TEST(Peaks, AreMeasured) {
  const kernels::Peaks peaks = kernels::measure_peaks();
  EXPECT_GT(peaks.f32_flops, 1e8);
  EXPECT_EQ(peaks.bf16_flops > 0, kernels::native_level() == "avx512" && host::has_bf16_instructions());
  EXPECT_GT(peaks.bytes, 1e7);
}

}  // namespace
}  // namespace lockstep::train
