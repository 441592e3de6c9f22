// The updater's groups: which rate and decay each parameter's memory gets; and running statistics.
#include "lockstep/parallel/updater.h"

#include <gtest/gtest.h>

#include "lockstep/nn/init.h"

namespace lockstep {
namespace {

// w <- w - rate (g scale + decay w) with w = 2 and g = 3: each parameter's value tells which rates it was given.
class UpdaterTest : public ::testing::Test {
 protected:
  UpdaterTest() {
    for (Parameter* p : {&weight_, &bias_, &norm_, &other_}) p->initialize = nn::constant(2);
    bias_.role = Role::Bias;
    norm_.role = Role::Norm;
    store_ = std::make_unique<ParameterStore>(
        std::vector<NamedParameter>{
            {"conv.weight", &weight_}, {"conv.bias", &bias_}, {"norm.weight", &norm_}, {"fc.weight", &other_}},
        ParameterStoreOptions{.dtype = DType::F64, .bucket_bytes = 3 * 64});
    store_->allocate({}, {&weight_, &bias_, &norm_, &other_});
    for (Bucket& bucket : store_->buckets()) {
      for (const BucketEntry& e : bucket.entries) {
        auto* gradient = static_cast<double*>(store_->gradient(e.parameter, 0));
        std::fill_n(gradient, e.parameter->shape.elements(), 3.0);
      }
    }
  }
  void update(UpdaterOptions options) {
    Updater(*store_, optim::sgd({}), std::move(options)).update(0.5, 4, 1);  // gradients are sums over 4 samples
  }
  void expect(const std::string& name, double rate, double decay) const {
    const Tensor value = store_->read(name);
    for (double v : value.data<double>()) EXPECT_DOUBLE_EQ(v, 2 - rate * (3.0 / 4 + decay * 2)) << name;
  }

  Parameter weight_{.shape = {3, 2}}, bias_{.shape = {3}}, norm_{.shape = {3}}, other_{.shape = {5, 3}};
  std::unique_ptr<ParameterStore> store_;
};

TEST_F(UpdaterTest, DecaysAllAlikeUnlessToldOtherwise) {
  update({.weight_decay = 0.1});
  for (const auto* name : {"conv.weight", "conv.bias", "norm.weight", "fc.weight"}) expect(name, 0.5, 0.1);
}

TEST_F(UpdaterTest, SparesBiasesAndNormsOnRequest) {
  update({.weight_decay = 0.1, .decay_biases_and_norms = false});
  expect("conv.weight", 0.5, 0.1);
  expect("conv.bias", 0.5, 0);
  expect("norm.weight", 0.5, 0);
  expect("fc.weight", 0.5, 0.1);
}

TEST_F(UpdaterTest, GroupsScaleRatesAndSetDecay) {
  update({.weight_decay = 0.1,
          .decay_biases_and_norms = false,
          .groups = {{.pattern = "fc.*", .rate_scale = 10},
                     {.pattern = "*.bias", .rate_scale = 2, .weight_decay = 0.3},
                     {.pattern = "*"}}});
  expect("conv.weight", 0.5, 0.1);
  expect("conv.bias", 1, 0.3);
  expect("norm.weight", 0.5, 0);
  expect("fc.weight", 5, 0.1);
}

TEST_F(UpdaterTest, TheFirstGroupThatFitsCounts) {
  update({.groups = {{.pattern = "conv.*", .rate_scale = 2}, {.pattern = "*.bias", .rate_scale = 7}}});
  expect("conv.bias", 1, 0);
}

TEST_F(UpdaterTest, RefusesAGroupThatFitsNothing) {
  try {
    update({.groups = {{.pattern = "layer9.*"}}});
    FAIL() << "the pattern fits no parameter";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[optimizer] no parameter's name fits the group 'layer9.*'");
  }
}

TEST_F(UpdaterTest, LeavesTheGapsBetweenParametersAtZero) {
  update({.weight_decay = 0.1});
  for (Bucket& bucket : store_->buckets()) {
    const auto* values = reinterpret_cast<const double*>(bucket.values.get());
    for (const BucketEntry& e : bucket.entries) {
      for (std::int64_t i = e.parameter->shape.elements(); i < e.elements; ++i) EXPECT_EQ(values[e.offset + i], 0);
    }
  }
}

TEST(RunningStatistics, MoveTowardsTheUnbiasedStatisticsOfTheBatch) {
  // Channel 0 saw 1, 2, 3, 6 (mean 3, unbiased variance 14/3), channel 1 saw 5 four times.
  const std::vector<double> sums{12, 20}, squares{50, 100};
  std::vector<double> mean{1, 5}, variance{2, 1};
  move_running_statistics<double>({.momentum = 0.25, .count = 4, .sums = sums, .squares = squares}, mean.data(),
                                  variance.data());
  EXPECT_DOUBLE_EQ(mean[0], 0.75 * 1 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(mean[1], 5);
  EXPECT_DOUBLE_EQ(variance[0], 0.75 * 2 + 0.25 * 14 / 3);
  EXPECT_DOUBLE_EQ(variance[1], 0.75);
}

TEST(RunningStatistics, StayWithoutSamples) {
  const std::vector<double> nothing{0};
  float mean = 3, variance = 4;
  move_running_statistics<float>({.momentum = 0.1, .count = 0, .sums = nothing, .squares = nothing}, &mean, &variance);
  EXPECT_EQ(mean, 3);
  EXPECT_EQ(variance, 4);
}

}  // namespace
}  // namespace lockstep
