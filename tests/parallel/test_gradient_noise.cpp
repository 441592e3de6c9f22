// The estimates of the gradient's noise, and their averages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "lockstep/parallel/reduce/gradient_noise.h"

namespace lockstep::test {
namespace {

// Where the squared norms are what they are on average, the estimates are exact, also for shards of different sizes.
TEST(GradientNoise, IsEstimatedWithoutBias) {
  constexpr double kTrace = 12, kSquare = 0.5;
  const double sizes[] = {3, 5, 4};
  std::array<double, parallel::kNoiseSums> sums{};
  double samples = 0;
  for (const double n : sizes) {
    sums[parallel::kShardSquares] += kSquare + kTrace / n;
    sums[parallel::kInverseSamples] += 1 / n;
    sums[parallel::kShards] += 1;
    samples += n;
  }
  const auto estimate = parallel::estimate_noise(sums, kSquare + kTrace / samples, samples);
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->trace, kTrace, 1e-12);
  EXPECT_NEAR(estimate->square, kSquare, 1e-12);
}

TEST(GradientNoise, NeedsTwoShards) {
  const std::array<double, parallel::kNoiseSums> one{4, 0.25, 1}, none{};
  EXPECT_FALSE(parallel::estimate_noise(one, 4, 4));
  EXPECT_FALSE(parallel::estimate_noise(none, 0, 0));
}

TEST(NoiseMeter, DividesTheAverages) {
  parallel::NoiseMeter meter;
  EXPECT_FALSE(meter.scale());
  meter.add({.trace = 30, .square = -1});
  EXPECT_FALSE(meter.scale()) << "an average below 0";
  meter.add({.trace = 10, .square = 3});
  ASSERT_TRUE(meter.scale());
  EXPECT_NEAR(*meter.scale(), 20.0 / 1, 1e-12);
  parallel::NoiseMeter resumed;
  std::copy(meter.state().begin(), meter.state().end(), resumed.state().begin());
  for (parallel::NoiseMeter* m : {&meter, &resumed}) m->add({.trace = 7, .square = 2});
  EXPECT_EQ(meter.scale(), resumed.scale());
  for (int step = 0; step < 2000; ++step) meter.add({.trace = 8, .square = 2});
  EXPECT_NEAR(*meter.scale(), 4, 1e-6) << "old steps are forgotten";
}

}  // namespace
}  // namespace lockstep::test
