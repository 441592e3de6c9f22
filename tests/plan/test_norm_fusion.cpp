// Norms that their readers apply: where a plan does that, where not, and that no bit changes.
#include <algorithm>
#include <optional>

#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/support.h"

namespace lockstep::norm_fusion {
namespace {

// The further uses of the result of the norm between the convolutions.
enum class Also : std::uint8_t { Nothing, Observed, Added, Strided };
// The shortcut around both convolutions: none, or a convolution and a norm, whose result may be observed.
enum class Shortcut : std::uint8_t { None, Normalised, Observed };

class Network : public nn::Module {
 public:
  explicit Network(Also also, Shortcut shortcut = Shortcut::None) : also_(also), shortcut_(shortcut) {
    if (shortcut == Shortcut::None) return;
    around_.emplace(this, "around", nn::Conv2dConfig{.in = 3, .out = 20, .kernel = 1});
    around_norm_.emplace(this, "around_norm", nn::BatchNorm2dConfig{.channels = 20});
  }
  plan::Traced operator()(const plan::Inputs& in) const {
    const auto in_block = block(in["image"]);
    const Value x = first_(in["image"]), y = relu(norm_(x));
    if (also_ == Also::Observed) observe("y", y);
    Value z = second_(y);
    if (also_ == Also::Added) z = z + y;
    const Value logits = out_(flatten(global_average_pool2d(relu(sum_with_shortcut(last_(z), in["image"])))));
    return {.loss = cross_entropy(logits, in["label"]), .prediction = logits};
  }

 private:
  Value sum_with_shortcut(Value z, Value image) const {
    if (shortcut_ == Shortcut::None) return z;
    const Value around = (*around_norm_)((*around_)(image));
    if (shortcut_ == Shortcut::Observed) observe("around", around);
    return z + around;
  }

  Also also_;
  Shortcut shortcut_;
  nn::Child<nn::Conv2d> first_{this, "first", {.in = 3, .out = 20, .kernel = 3, .padding = 1}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 20}};
  nn::Child<nn::Conv2d> second_{
      this, "second", {.in = 20, .out = 20, .kernel = 3, .stride = also_ == Also::Strided ? 2 : 1, .padding = 1}};
  nn::Child<nn::BatchNorm2d> last_{this, "last", {.channels = 20}};
  nn::Child<nn::Linear> out_{this, "out", {.in = 20, .out = 4}};
  std::optional<nn::Child<nn::Conv2d>> around_;
  std::optional<nn::Child<nn::BatchNorm2d>> around_norm_;
};

std::map<std::string, Type> batch_types(DType dtype = DType::F32) {
  return {{"image", {{4, 3, 9, 8}, dtype}}, {"label", {Shape{4}, DType::I32}}};
}

struct Outcome {
  double loss = 0, saved = 0;
  std::vector<double> gradients, sums;
  std::int64_t forward = 0, backward = 0, statistics = 0, again = 0, joined = 0;  // steps
  std::string text;
  bool fused() const { return forward == 1 && backward == 1 && statistics == 1; }
  bool plain() const { return forward + backward + statistics == 0 && saved == 0; }
  void expect_bits_of(const Outcome& o) const {
    EXPECT_EQ(loss, o.loss);
    EXPECT_EQ(gradients, o.gradients);
    EXPECT_EQ(sums, o.sums);
  }
};

Outcome outcome(Also also, plan::CompileOptions options = {}, Shortcut shortcut = Shortcut::None) {
  const Network network(also, shortcut);
  plan::CompiledModel model(
      network.named_parameters(), [&](const plan::Inputs& in) { return network(in); }, {.seed = 3}, std::move(options));
  plan::Plan& plan = model.plan(Mode::Train, batch_types());
  fill_input<float>(plan, "image");
  for (std::int32_t i = 0; i < 4; ++i) static_cast<std::int32_t*>(plan.input("label"))[i] = i;
  plan.run();
  Outcome o{.loss = plan.loss(), .text = plan.describe()};
  for (const NamedParameter& p : model.parameters().parameters()) {
    if (!model.parameters().has_gradient(p.parameter)) continue;
    const auto values = values_of(model.parameters().read_gradient(p.name));
    o.gradients.insert(o.gradients.end(), values.begin(), values.end());
  }
  for (std::size_t s = 0; s < plan.statistics().size(); ++s)
    o.sums.insert(o.sums.end(), plan.statistic_sums(s), plan.statistic_sums(s) + 40);
  for (const plan::PlanStep& step : plan.steps()) {
    o.forward += step.op->name() == "conv2d_of_norm" ? 1 : 0;
    o.backward += step.op->name() == "conv2d_of_norm_backward_weights" ? 1 : 0;
    o.statistics += step.op->name() == "batch_norm2d_statistics" ? 1 : 0;
    o.joined += step.op->name().starts_with("batch_norm2d_sum") ? 1 : 0;
    o.again += step.op->name() == "batch_norm2d_normalise" && step.path == "again norm" ? 1 : 0;
    o.saved += step.op->saved_bytes(step.input_types);
  }
  return o;
}

bool has_winograd() { return kernels::native_fused(); }

TEST(NormFusion, ChangesNoBit) {
  if (!has_winograd()) GTEST_SKIP() << "Winograd's kernels are not offered at this level of instructions";
  const Outcome plain = outcome(Also::Observed);
  EXPECT_TRUE(plain.plain()) << "the observed value must exist";
  EXPECT_EQ(plain.again, 0);
  for (const plan::Recompute what : {plan::Recompute::None, plan::Recompute::Norms, plan::Recompute::Blocks}) {
    const Outcome fused = outcome(Also::Nothing, {.recompute = what});
    EXPECT_EQ(fused.forward, what == plan::Recompute::Blocks ? 2 : 1);
    EXPECT_EQ(fused.backward, 1);
    EXPECT_EQ(fused.statistics, 1) << "a few numbers per channel are kept";
    EXPECT_EQ(fused.again, 0);
    fused.expect_bits_of(plain);
  }
}

TEST(NormFusion, SavesAPassForEachReader) {
  if (!has_winograd()) GTEST_SKIP() << "Winograd's kernels are not offered at this level of instructions";
  const Outcome fused = outcome(Also::Nothing);
  EXPECT_EQ(fused.saved, 2 * 2.0 * 4 * 20 * 9 * 8 * sizeof(float)) << "forward and weight gradient: x and y each";
  EXPECT_NE(fused.text.find("of norm + relu, 45.0 KiB less than in two passes"), std::string::npos) << fused.text;
  EXPECT_NE(fused.text.find("fusion with norms saves 0.1 MiB"), std::string::npos) << fused.text;
  EXPECT_EQ(outcome(Also::Observed).text.find("saves"), std::string::npos);
}

TEST(NormFusion, NeedsReadersThatNormalise) {
  using Math = kernels::KernelOptions::ConvMath;
  const Outcome added = outcome(Also::Added), strided = outcome(Also::Strided), observed = outcome(Also::Observed);
  EXPECT_TRUE(added.plain()) << "the sum reads the result, too";
  EXPECT_TRUE(strided.plain());
  EXPECT_TRUE(observed.plain());
  for (const Outcome* o : {&added, &strided})
    EXPECT_NE(o->text.find(" does not normalise what it reads"), std::string::npos) << o->text;
  EXPECT_NE(observed.text.find("writes its result, as the model keeps it"), std::string::npos) << observed.text;
  EXPECT_TRUE(outcome(Also::Nothing, {.fuse = false}).plain());
  EXPECT_TRUE(outcome(Also::Nothing, {.bf16 = true}).plain());
  EXPECT_TRUE(outcome(Also::Nothing, {.kernels = {.conv_math = Math::Exact}}).plain());
  EXPECT_TRUE(outcome(Also::Nothing, {.kernels = {.prefer = "generic"}}).plain());
  if (!has_winograd()) return;
  EXPECT_TRUE(outcome(Also::Nothing, {.kernels = {.conv_math = Math::Accurate}}).fused());
}

TEST(NormFusion, KeepsPortableBits) {
  const plan::CompileOptions options{.kernels = {.bits = kernels::KernelOptions::Bits::Portable}};
  const Outcome fused = outcome(Also::Nothing, options);
  EXPECT_TRUE(fused.fused());
  fused.expect_bits_of(outcome(Also::Observed, options));
}

TEST(NormFusion, TakesTheNormOfAShortcut) {
  for (const plan::Recompute what : {plan::Recompute::None, plan::Recompute::Norms, plan::Recompute::Blocks}) {
    const Outcome joined = outcome(Also::Added, {.recompute = what}, Shortcut::Normalised),
                  plain = outcome(Also::Added, {.recompute = what}, Shortcut::Observed);
    EXPECT_EQ(joined.joined, what == plan::Recompute::None ? 1 : 2) << "forward, and again in backward";
    EXPECT_EQ(joined.statistics, 1);
    EXPECT_EQ(plain.joined, 0);
    joined.expect_bits_of(plain);
  }
  EXPECT_EQ(outcome(Also::Added, {.bf16 = true}, Shortcut::Normalised).joined, 0);
  EXPECT_EQ(outcome(Also::Added, {.kernels = {.prefer = "generic"}}, Shortcut::Normalised).joined, 0);
}

// A convolution over three axes is none that normalises, though one slice with a kernel of one slice is computed as an
// image is.
TEST(NormFusion, LeavesVolumes) {
  class Volume : public nn::Module {
   public:
    plan::Traced operator()(const plan::Inputs& in) const {
      const Value z = second_(relu(norm_(first_(in["image"]))));
      return {.loss = mean(square(z)), .prediction = z};
    }

   private:
    nn::Child<nn::Conv3d> first_{this, "first", {.in = 3, .out = 20, .kernel = 1}};
    nn::Child<nn::BatchNorm3d> norm_{this, "norm", {.channels = 20}};
    nn::Child<nn::Conv3d> second_{this, "second", {.in = 20, .out = 20, .kernel = {1, 3, 3}, .padding = {0, 1, 1}}};
  };
  const Volume network;
  plan::CompiledModel model(network.named_parameters(), [&](const plan::Inputs& in) { return network(in); });
  const plan::Plan& plan = model.plan(Mode::Train, {{"image", {{4, 3, 1, 9, 8}, DType::F32}}});
  EXPECT_EQ(plan.describe().find("of_norm"), std::string::npos) << plan.describe();
  if (!has_winograd()) return;
  EXPECT_NE(plan.describe().find("winograd4"), std::string::npos) << plan.describe();
}

// A rank's norm that needs the sums of other ranks is no op that its readers can take.
class Alone : public Collective {
 public:
  void allreduce_sum(std::span<double>) override {}
};

TEST(NormFusion, LeavesSynchronisedNorms) {
  EXPECT_TRUE(outcome(Also::Nothing, {.synchronisation = {.collective = std::make_shared<Alone>(), .all_norms = true}})
                  .plain());
}

}  // namespace
}  // namespace lockstep::norm_fusion
