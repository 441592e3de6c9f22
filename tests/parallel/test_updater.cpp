// The updater's groups: which rate and decay each parameter's memory gets; and running statistics.
#include "lockstep/parallel/update/updater.h"

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
    store_ = std::make_unique<plan::ParameterStore>(
        std::vector<NamedParameter>{
            {"conv.weight", &weight_}, {"conv.bias", &bias_}, {"norm.weight", &norm_}, {"fc.weight", &other_}},
        plan::ParameterStoreOptions{.dtype = DType::F64, .bucket_bytes = 3 * 64});
    store_->allocate({}, {&weight_, &bias_, &norm_, &other_});
    for (plan::Bucket& bucket : store_->buckets()) {
      for (const plan::BucketEntry& e : bucket.entries) {
        auto* gradient = static_cast<double*>(store_->gradient(e.parameter, 0));
        std::fill_n(gradient, e.parameter->shape.elements(), 3.0);
      }
    }
  }
  void update(const parallel::UpdaterOptions& options) {
    parallel::Updater(*store_, optim::sgd({}), options).update(0.5, 4, 1);  // gradients are sums over 4 samples
  }
  void expect(const std::string& name, double rate, double decay) const {
    const Tensor value = store_->read(name);
    for (double v : value.data<double>()) EXPECT_DOUBLE_EQ(v, 2 - rate * (3.0 / 4 + decay * 2)) << name;
  }

  Parameter weight_{.shape = {3, 2}}, bias_{.shape = {3}}, norm_{.shape = {3}}, other_{.shape = {5, 3}};
  std::unique_ptr<plan::ParameterStore> store_;
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

TEST_F(UpdaterTest, EachSettingIsThatOfTheFirstGroupThatFitsAndHasIt) {
  update({.weight_decay = 0.1,
          .groups = {{.pattern = "conv.*", .rate_scale = 2},
                     {.pattern = "*.bias", .rate_scale = 7, .weight_decay = 0},
                     {.pattern = "conv.bias", .weight_decay = 0.5}}});
  expect("conv.weight", 1, 0.1);
  expect("conv.bias", 1, 0);
  expect("fc.weight", 0.5, 0.1);
}

TEST_F(UpdaterTest, RefusesAGroupThatFitsNothing) {
  try {
    update({.groups = {{.pattern = "layer9.*"}}});
    FAIL() << "the pattern fits no parameter";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[optimizer] the pattern 'layer9.*' of a group matches no parameter");
  }
}

TEST_F(UpdaterTest, LeavesTheGapsBetweenParametersAtZero) {
  update({.weight_decay = 0.1});
  for (plan::Bucket& bucket : store_->buckets()) {
    const auto* values = reinterpret_cast<const double*>(bucket.values);
    for (const plan::BucketEntry& e : bucket.entries) {
      for (std::int64_t i = e.parameter->shape.elements(); i < e.elements; ++i) EXPECT_EQ(values[e.offset + i], 0);
    }
  }
}

// Two parameters of several chunks and a small one, with copies in other layouts and types, and gradients.
class Network {
 public:
  Network()
      : store_({{"a", &a_}, {"b", &b_}, {"c", &c_}}, {.seed = 1, .optimizer_states = 2, .bucket_bytes = 1 << 18}) {
    store_.allocate({{&a_, Layout::channels_blocked(a_.shape, 16)}}, {&c_, &a_, &b_});
    for (const Parameter* p : {&a_, &b_, &c_}) {
      for (const DType dtype : {DType::F32, DType::BF16}) {
        copies_.push_back({p, p == &a_ ? Layout{} : blocked(p->shape), dtype});
        ids_.push_back(store_.derive(p, copies_.back().layout, dtype));
      }
    }
    store_.make_copies();
    RandomStream random(2, 2);
    for (plan::Bucket& bucket : store_.buckets()) {
      for (const plan::BucketEntry& e : bucket.entries) {
        std::vector<float> logical(static_cast<std::size_t>(e.parameter->shape.elements()));
        for (float& v : logical) v = static_cast<float>(random.normal());
        reorder(e.parameter->shape, DType::F32, {}, logical.data(), store_.layout(e.parameter),
                store_.gradient(e.parameter, 0));
      }
    }
  }
  plan::ParameterStore& store() { return store_; }
  parallel::Updater updater() {
    return {store_, optim::adam({}), {.weight_decay = 0.1, .decay_biases_and_norms = false}};
  }
  std::vector<float> values() {
    std::vector<float> all;
    for (plan::Bucket& bucket : store_.buckets()) {
      const auto* values = reinterpret_cast<const float*>(bucket.values);
      all.insert(all.end(), values, values + bucket.elements);
    }
    return all;
  }
  void expect_current_copies() {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const auto& [parameter, layout, dtype] = copies_[i];
      const auto bytes = static_cast<std::size_t>(layout.storage_elements(parameter->shape)) * size_of(dtype);
      std::vector<std::byte> expected(bytes);
      Reorder(parameter->shape, DType::F32, store_.layout(parameter), dtype, layout)(store_.value(parameter),
                                                                                     expected.data());
      const auto* copy = static_cast<const std::byte*>(store_.derived(ids_[i]));
      EXPECT_TRUE(std::ranges::equal(expected, std::span(copy, bytes))) << "copy " << i;
    }
  }

 private:
  static Layout blocked(const Shape& shape) { return shape.rank() > 1 ? Layout::channels_blocked(shape, 8) : Layout{}; }
  struct Copy {
    const Parameter* parameter;
    Layout layout;
    DType dtype;
  };
  Parameter a_{.shape = {40, 50, 5, 5}, .initialize = nn::normal(0, 1)},
      b_{.shape = {300, 301}, .initialize = nn::normal(0, 1)},
      c_{.shape = {7}, .initialize = nn::normal(0, 1), .role = Role::Bias};
  plan::ParameterStore store_;
  std::vector<Copy> copies_;
  std::vector<int> ids_;
};

TEST(Updater, KeepsDerivedCopiesCurrent) {
  Network network;
  parallel::Updater updater = network.updater();
  const std::vector<float> before = network.values();
  for (std::int64_t step = 1; step <= 2; ++step) updater.update(0.1, 8, step);
  EXPECT_NE(network.values(), before);
  network.expect_current_copies();
}

TEST(Updater, GivesTheSameBitsInRanges) {
  Network whole, parts;
  whole.updater().update(0.1, 8, 1);
  parallel::Updater updater = parts.updater();
  const parallel::UpdateStep step{.learning_rate = 0.1, .gradient_scale = 1.0 / 8, .count = 1};
  std::vector<plan::Bucket>& buckets = parts.store().buckets();
  ASSERT_GT(buckets.size(), 1u);
  for (std::size_t b = buckets.size(); b-- > 0;) {
    const std::int64_t n = buckets[b].elements;
    for (const std::int64_t owner : {2, 0, 1}) updater.update(b, part_of(n, 3, owner), step);
    updater.update(b, {n, n}, step);
  }
  EXPECT_EQ(whole.values(), parts.values());
  parts.expect_current_copies();
}

TEST(Updater, LeavesWhatIsOutsideTheRange) {
  Network network;
  const std::vector<float> before = network.values();
  network.updater().update(0, {20000, 20100}, {.learning_rate = 0.1});
  const std::vector<float> after = network.values();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool inside = i >= 20000 && i < 20100;
    ASSERT_TRUE(inside || after[i] == before[i]) << "element " << i;
  }
  EXPECT_NE(after[20050], before[20050]);
}

TEST(Updater, RefusesARuleWithoutMemoryForItsStates) {
  Parameter a{.shape = {3}, .initialize = nn::constant(0)};
  plan::ParameterStore store({{"a", &a}}, {.optimizer_states = 1});
  store.allocate({}, {&a});
  EXPECT_THROW(parallel::Updater(store, optim::adam({}), {}), Error);
}

TEST(RunningStatistics, MoveTowardsTheUnbiasedStatisticsOfTheBatch) {
  // Channel 0 saw 1, 2, 3, 6 (mean 3, unbiased variance 14/3), channel 1 saw 5 four times.
  const std::vector<double> sums{12, 20}, squares{50, 100};
  std::vector<double> mean{1, 5}, variance{2, 1};
  parallel::move_running_statistics<double>({.momentum = 0.25, .count = 4, .sums = sums, .squares = squares},
                                            mean.data(), variance.data());
  EXPECT_DOUBLE_EQ(mean[0], 0.75 * 1 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(mean[1], 5);
  EXPECT_DOUBLE_EQ(variance[0], 0.75 * 2 + 0.25 * 14 / 3);
  EXPECT_DOUBLE_EQ(variance[1], 0.75);
}

TEST(RunningStatistics, StayWithoutSamples) {
  const std::vector<double> nothing{0};
  float mean = 3, variance = 4;
  parallel::move_running_statistics<float>({.momentum = 0.1, .count = 0, .sums = nothing, .squares = nothing}, &mean,
                                           &variance);
  EXPECT_EQ(mean, 3);
  EXPECT_EQ(variance, 4);
}

}  // namespace
}  // namespace lockstep
