#include "lockstep/train/report/metric_result.h"

#include <gtest/gtest.h>

#include "lockstep/train/report/epoch_sums.h"

namespace lockstep::train {
namespace {

// The mean of two sums over the samples.
MetricRule two_means(MetricForm form = MetricForm::Number) {
  return {.name = "means",
          .results = 2,
          .finish =
              [](std::span<const double> sums, double samples, std::span<double> results) {
                results[0] = sums[0] / samples;
                results[1] = sums[1] / samples;
              },
          .form = form};
}

MetricRule one_mean(MetricForm form = MetricForm::Number) {
  MetricRule rule = two_means(form);
  rule.name = "mean";
  rule.results = 1;
  rule.finish = [](std::span<const double> sums, double samples, std::span<double> results) {
    results[0] = sums[0] / samples;
  };
  return rule;
}

TEST(MetricResult, FollowsFromSumsAndSamples) {
  MetricResult result;
  set(result, two_means(), std::vector<double>{3, 8}, 4);
  EXPECT_EQ(result.results, (std::vector<double>{0.75, 2}));
  set(result, two_means(), std::vector<double>{3, 8}, 0);
  EXPECT_TRUE(result.results.empty()) << "without samples there is no result";
  set(result, two_means(), {}, 4);
  EXPECT_TRUE(result.results.empty()) << "and none without sums, in a step of training";
}

TEST(MetricResult, TextHasThoseWithOneResult) {
  std::vector<MetricResult> metrics(3);
  set(metrics[0], one_mean(MetricForm::Percent), std::vector<double>{3}, 4);
  set(metrics[1], two_means(), std::vector<double>{3, 8}, 4);
  set(metrics[2], one_mean(), std::vector<double>{1}, 3);
  EXPECT_EQ(metrics_text(metrics), "mean 75.00%, mean 0.3333");
  EXPECT_EQ(find_result(metrics, "mean"), 0.75);
  EXPECT_FALSE(find_result(metrics, "means")) << "two results are not one";
  EXPECT_FALSE(find_result(metrics, "other"));
}

TEST(MetricResult, SmallLossesKeepTheirDigits) {
  EXPECT_EQ(loss_text(1.25), "1.2500");
  EXPECT_EQ(loss_text(0.0334), "0.0334");
  EXPECT_EQ(loss_text(0.00012346), "0.0001235");
  EXPECT_EQ(loss_text(0), "0.0000");
}

TEST(EpochSums, AddTheSumsOfMetricsStepByStep) {
  const std::vector<MetricRule> rules{one_mean()};
  EpochSums sums{.epoch = 0};
  for (const double part : {1.0, 4.0}) {
    std::vector<MetricResult> step(1);
    set(step[0], rules[0], std::vector<double>{part}, 2);
    sums.samples += 2;
    sums.add_metrics(rules, step);
  }
  EXPECT_EQ(find_result(sums.metrics, "mean"), 5.0 / 4);
  sums.take_rules(rules);
  EXPECT_EQ(find_result(sums.metrics, "mean"), 5.0 / 4) << "nothing is added";
  const std::vector<MetricRule> others{two_means()};
  sums.take_rules(others);
  EXPECT_EQ(sums.metrics.at(0).name, "means") << "a metric that the model has no more is dropped";
  EXPECT_TRUE(sums.metrics.at(0).results.empty());
}

}  // namespace
}  // namespace lockstep::train
