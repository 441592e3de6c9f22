// Running a plan allocates nothing of ours, makes no primitive, and what oneDNN allocates while its primitives run is
// the same in every step.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "lockstep/kernels/registry.h"

#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/classify.h"
#include "models/zoo/resnet.h"
#include "tests/allocation_counter.h"
#include "tests/plan/gradient_hook.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

class Network {
 public:
  Network()
      : filter_(parameters_.add("conv", {8, 3, 3, 3})),
        gamma_(parameters_.add("gamma", {8}, Role::Norm)),
        beta_(parameters_.add("beta", {8}, Role::Norm)),
        weight_(parameters_.add("weight", {5, 8})),
        bias_(parameters_.add("bias", {5}, Role::Bias)) {}

  plan::Traced trace(const plan::Inputs& in) const {
    Graph& g = in.graph();
    Value x = conv2d(in["image"], g.parameter(filter_), {}, {.padding_h = 1, .padding_w = 1});
    x = relu(batch_norm2d(x, g.parameter(gamma_), g.parameter(beta_), 1e-5).y);
    x = dropout(x + x, 0.2, "dropout");
    x = flatten(global_average_pool2d(max_pool2d(x, {})));
    x = linear(x, g.parameter(weight_), g.parameter(bias_));
    return {.loss = cross_entropy(x, in["target"], {.label_smoothing = 0.1}),
            .metrics = {metrics::accuracy(x, in["target"])}};
  }
  const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
  Parameter &filter_, &gamma_, &beta_, &weight_, &bias_;
};

TEST(Allocations, AreCounted) {
  const counting::Counts before = counting::counts();
  const auto one = std::make_unique<int>(1);
  const counting::Counts made = counting::counts() - before;
  EXPECT_EQ(made.news, 1);
  EXPECT_EQ(made.mallocs, 0);
}

TEST(Allocations, OfTheCLibraryAreCounted) {
  if (!counting::kCountsMalloc) GTEST_SKIP() << "malloc is the sanitizer's";
  const counting::Counts before = counting::counts();
  void* volatile memory = std::malloc(8);  // volatile: a compiler may leave out memory that nobody sees
  memory = std::realloc(memory, 16);
  std::free(memory);
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, 64), 0);
  memory = aligned;
  std::free(memory);
  EXPECT_EQ((counting::counts() - before).mallocs, 3);
}

TEST(Allocations, RunningAPlanMakesNone) {
  const Network network;
  plan::CompiledModel model(network.parameters().named(), [&](const plan::Inputs& in) { return network.trace(in); },
                            {.dtype = DType::F64, .gradient_slots = 2});
  plan::Plan& plan =
      model.plan(Mode::Train, {{"image", {Shape{6, 3, 10, 9}, DType::F64}}, {"target", {Shape{6}, DType::I32}}});
  int final_gradients = 0;
  GradientHook hook([&](const Parameter*) { ++final_gradients; });
  const std::string image = "image", target = "target", step = Graph::kStep, ids = Graph::kSampleIds;
  double checksum = 0;
  const auto run = [&](plan::GradientTarget into) {
    std::fill_n(static_cast<double*>(plan.input(image)), 6 * 3 * 90, 0.5);
    std::fill_n(static_cast<std::int32_t*>(plan.input(target)), 6, 2);
    *static_cast<std::int64_t*>(plan.input(step)) = 3;
    std::fill_n(static_cast<std::int64_t*>(plan.input(ids)), 6, 1);
    plan.run(into, hook);
    checksum += plan.loss() + plan.weight() + plan.values(plan.metrics()[0].sums[0])[0];
  };
  run({.slot = 0});
  run({.slot = 1, .accumulate = true});
  const counting::Counts before = counting::counts();
  for (int i = 0; i < 5; ++i) {
    run({.slot = 0});
    run({.slot = 1, .accumulate = true});
  }
  const counting::Counts made = counting::counts() - before;
  EXPECT_EQ(made.news, 0);
  EXPECT_EQ(made.mallocs, 0);
  EXPECT_EQ(final_gradients, 12 * 5);
  EXPECT_TRUE(std::isfinite(checksum));
}

// A residual network, its kernels those that the registry ranks first.
class TrainingPlan {
 public:
  explicit TrainingPlan(bool bf16)
      : network_(
            {.blocks = {1, 1}, .width = 16, .stem = models::ResNetConfig::Stem::Cifar, .in_channels = 3, .classes = 5}),
        model_(network_.named_parameters(), models::classify(network_), {.dtype = DType::F32}, {.bf16 = bf16}),
        plan_(model_.plan(Mode::Train,
                          {{"image", {Shape{4, 3, 16, 16}, DType::F32}}, {"label", {Shape{4}, DType::I32}}})) {}
  void step() {
    fill_input<float>(plan_, "image");
    std::fill_n(static_cast<std::int32_t*>(plan_.input("label")), 4, 2);
    plan_.run();
    loss_ = plan_.loss();
  }
  double loss() const { return loss_; }

 private:
  models::ResNet network_;
  plan::CompiledModel model_;
  plan::Plan& plan_;
  double loss_ = 0;
};

TEST(Allocations, OfAResidualNetworkAreOneDnnsAlone) {
  for (const bool bf16 : {false, true}) {
    TrainingPlan training(bf16);
    training.step();
    training.step();
    counting::Counts first;
    for (int step = 3; step <= 5; ++step) {
      const counting::Counts before = counting::counts();
      training.step();
      const counting::Counts made = counting::counts() - before;
      EXPECT_EQ(made.news, 0) << "step " << step;
      EXPECT_EQ(made.mallocs, 0) << "step " << step;
      EXPECT_EQ(made.creations, 0) << "step " << step;
      EXPECT_EQ(made.executions > 0, kernels::has_onednn());
      if (step == 3) first = made;
      EXPECT_EQ(made.executions, first.executions) << "step " << step;
      EXPECT_EQ(made.inside, first.inside) << "step " << step;
    }
    RecordProperty(bf16 ? "onednn_allocations_bf16" : "onednn_allocations_f32", std::to_string(first.inside));
    EXPECT_TRUE(std::isfinite(training.loss()));
  }
}

// Whatever leaks grows in every fifty steps. The rest does not: the C library may take a page for its own lists, and a
// page of the arena becomes resident when it is first written.
TEST(Allocations, ResidentMemoryStaysFlat) {
  if (!counting::kCountsMalloc) GTEST_SKIP() << "sanitizers keep what was freed";
  TrainingPlan training(false);
  const auto resident_pages = [] {
    std::ifstream status("/proc/self/statm");
    std::int64_t total = 0, resident = -1;
    status >> total >> resident;
    return resident;
  };
  for (int step = 0; step < 3; ++step) training.step();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int window = 0; window < 3; ++window) {
    const std::int64_t before = resident_pages();
    ASSERT_GT(before, 0);
    for (int step = 0; step < 50; ++step) training.step();
    least = std::min(least, resident_pages() - before);
  }
  EXPECT_LE(least, 2) << "pages in 50 steps";
}

}  // namespace
}  // namespace lockstep
