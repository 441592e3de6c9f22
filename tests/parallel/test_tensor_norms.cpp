// TensorNorms by itself, on one rank.
#include "lockstep/parallel/update/tensor_norms.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/parallel/step_rig.h"

namespace lockstep::test {
namespace {

using parallel::StepState;
using parallel::StepVerdict;

constexpr float kWeight = 2, kGradient = 3;
constexpr std::int64_t kElements = 1500;
constexpr double kRate = 0.5, kNormScale = 0.5;

// One bucket with one parameter, of two blocks, whose summed gradient and its squares are complete.
class TensorNormsTest : public ::testing::Test {
 protected:
  TensorNormsTest() {
    store_.allocate({}, {&weight_});
    std::fill_n(static_cast<float*>(store_.gradient(&weight_, 0)), kElements, kGradient);
    reducer_.add_bucket({.dtype = DType::F64, .elements = 1, .slots = {{statistics_.data()}}});
    reducer_.add_bucket({.dtype = DType::F32,
                         .elements = store_.buckets()[0].elements,
                         .slots = {{store_.buckets()[0].gradients[0]}},
                         .everywhere = false});
    reducer_.add_bucket({.dtype = DType::F64, .elements = 2, .slots = {{squares_.data()}}});
    reducer_.add_bucket({.dtype = DType::F64, .elements = 4, .slots = {{norms_.data()}}});
    for (int bucket = 0; bucket < 3; ++bucket) reducer_.start(bucket);
    while (!reducer_.reduced(2)) reducer_.progress();
  }
  static StepState step() {
    return {.update = {.learning_rate = kRate, .gradient_scale = kNormScale}, .decided = true, .has_samples = true};
  }
  float updated(parallel::Updater& updater) {
    updater.update(0, {0, store_.buckets()[0].elements}, step().update);
    return *reinterpret_cast<const float*>(store_.buckets()[0].values);
  }

  Parameter weight_{.shape = Shape{kElements}, .initialize = nn::constant(kWeight)};
  plan::ParameterStore store_{{{"w", &weight_}}, {.gradient_slots = 1, .optimizer_states = 1}};
  AlignedBuffer row_ = allocate_aligned(StepRigMemory::kRow);
  parallel::SharedFlags flags_{std::vector<std::span<std::byte>>{{row_.get(), StepRigMemory::kRow}}, 0};
  NoTransport transport_;
  parallel::Domains domains_{.rank = 0, .domain_of = {0}, .members = {{0}}};
  parallel::BucketReducer reducer_{transport_, flags_, domains_, {0, 1, 0}, {.threads = false}};
  std::array<double, 1> statistics_{};
  std::array<double, 2> squares_{1024 * kGradient * kGradient, (kElements - 1024) * kGradient* kGradient};
  std::array<double, 4> norms_{};
};

TEST_F(TensorNormsTest, GiveTheUpdaterTheTrustOfWholeParameters) {
  parallel::Updater updater(store_, optim::lars({.coefficient = 0.01, .epsilon = 0}), {});
  parallel::TensorNorms norms(store_, updater, reducer_, {.squares = squares_, .norms = norms_});
  norms.open();
  EXPECT_FALSE(norms.advance(step())) << "their reduction has only begun";
  EXPECT_DOUBLE_EQ(norms_[0] + norms_[1], kElements * kWeight * kWeight);
  while (!norms.advance(step())) reducer_.progress();
  const double mean = kNormScale * kGradient, trust = 0.01 * kWeight / mean;
  EXPECT_NEAR(updated(updater), kWeight - kRate * trust * mean, 1e-5);
}

TEST_F(TensorNormsTest, AreReducedInAStepThatIsNotAppliedToo) {
  parallel::Updater updater(store_, optim::lars({}), {});
  parallel::TensorNorms norms(store_, updater, reducer_, {.squares = squares_, .norms = norms_});
  StepState state = step();
  state.verdict = StepVerdict::BadGradient;
  norms.open();
  for (int i = 0; i < 1000 && !norms.advance(state); ++i) reducer_.progress();
  EXPECT_TRUE(norms.advance(state));
  EXPECT_EQ(norms_[0], 0) << "nothing is measured";
}

TEST_F(TensorNormsTest, ClipParametersByTheSquaresWithoutAReduction) {
  parallel::Updater updater(store_, optim::sgd({.momentum = 0.9}), {.clip_layer_norm = 1});
  parallel::TensorNorms norms(store_, updater, reducer_, {.squares = squares_});
  norms.open();
  EXPECT_TRUE(norms.advance(step()));
  const double mean = kNormScale * kGradient, norm = mean * std::sqrt(static_cast<double>(kElements));
  EXPECT_NEAR(updated(updater), kWeight - kRate * mean / norm, 1e-5);
}

}  // namespace
}  // namespace lockstep::test
