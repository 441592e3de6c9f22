// Metrics of probabilities against plain loops, from the sums of two parts.
#include "lockstep/metrics/probabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::metrics {
namespace {

constexpr std::int64_t kAll = 50, kFirst = 20, kBins = 7;

TEST(ProbabilityMetrics, AgreeWithPlainLoops) {
  std::vector<float> logits, target;
  for (int i = 0; i < kAll; ++i) {
    logits.push_back(static_cast<float>(3 * std::sin(1.7 * i)));
    target.push_back(i % 3 == 0 ? 1.0F : i % 7 == 0 ? 0.25F : 0.0F);
  }
  logits[4] = 100;  // a probability of 1 belongs to the last bin
  plan::CompiledModel model(
      {},
      [](const plan::Inputs& in) {
        const Value x = in["x"], t = in["t"];
        return plan::Traced{.metrics = {log_loss(x, t), calibration(x, t), calibration_error(x, t, kBins)}};
      },
      {}, {});
  std::map<std::string, std::vector<double>> sums;
  std::map<std::string, MetricRule> rules;
  for (const auto& [first, count] : {std::pair{std::int64_t{0}, kFirst}, {kFirst, kAll - kFirst}}) {
    const Type numbers{Shape{count}, DType::F32};
    plan::Plan& plan = model.plan(Mode::Eval, {{"x", numbers}, {"t", numbers}});
    std::copy_n(logits.begin() + first, count, static_cast<float*>(plan.input("x")));
    std::copy_n(target.begin() + first, count, static_cast<float*>(plan.input("t")));
    plan.run();
    for (const plan::PlanMetric& metric : plan.metrics()) {
      rules[metric.rule.name] = metric.rule;
      std::vector<double>& mine = sums[metric.rule.name];
      std::size_t at = 0;
      for (const plan::PlanMetric::Sum& sum : metric.sums) {
        mine.resize(std::max(mine.size(), at + sum.elements));
        for (const double value : plan.values(sum)) mine[at++] += value;
      }
    }
  }
  const auto result = [&](const std::string& name) {
    std::vector<double> results(1);
    rules.at(name).finish(sums.at(name), kAll, results);
    return results[0];
  };
  double loss = 0, clicks = 0, expected = 0;
  std::vector<double> differences(kBins);
  for (std::size_t i = 0; i < kAll; ++i) {
    const auto x = static_cast<double>(logits[i]), t = static_cast<double>(target[i]);
    const double p = 1 / (1 + std::exp(-x));
    loss += t * std::log1p(std::exp(-x)) + (1 - t) * (x + std::log1p(std::exp(-x)));
    clicks += t;
    expected += p;
    differences[std::min<std::size_t>(static_cast<std::size_t>(p * kBins), kBins - 1)] += p - t;
  }
  double error = 0;
  for (const double difference : differences) error += std::abs(difference) / kAll;
  EXPECT_NEAR(result("log_loss"), loss / kAll, 1e-12);
  EXPECT_NEAR(result("calibration"), expected / clicks, 1e-12);
  EXPECT_NEAR(result("calibration_error"), error, 1e-12);
}

TEST(ProbabilityMetrics, CalibrationWithoutPositiveTargetsIsNoNumber) {
  plan::CompiledModel model(
      {}, [](const plan::Inputs& in) { return plan::Traced{.metrics = {calibration(in["x"], in["t"])}}; }, {}, {});
  const Type numbers{Shape{4}, DType::F32};
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", numbers}, {"t", numbers}});
  for (const float target : {0.0F, 0.5F}) {
    std::fill_n(static_cast<float*>(plan.input("x")), 4, 0.0F);  // probabilities of 0.5
    std::fill_n(static_cast<float*>(plan.input("t")), 4, target);
    plan.run();
    const plan::PlanMetric& metric = plan.metrics()[0];
    std::vector<double> sums, result(1);
    for (const plan::PlanMetric::Sum& sum : metric.sums) {
      for (const double value : plan.values(sum)) sums.push_back(value);
    }
    metric.rule.finish(sums, 4, result);
    if (target > 0) {
      EXPECT_EQ(result[0], 1);
    } else {
      EXPECT_TRUE(std::isnan(result[0])) << result[0];
    }
  }
}

TEST(ProbabilityMetrics, ThatDoNotFitAreNamed) {
  const auto error_of = [](const auto& make) -> std::string {
    try {
      plan::CompiledModel model(
          {}, [&](const plan::Inputs& in) { return plan::Traced{.metrics = {make(in["x"], in["t"])}}; }, {}, {});
      model.plan(Mode::Eval, {{"x", {Shape{4}, DType::F32}}, {"t", {Shape{4, 1}, DType::F32}}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(error_of([](Value x, Value t) { return log_loss(x, t); }),
         "log_loss: logits are f32(4) and targets f32(4, 1)");
  expect(error_of([](Value x, Value /*t*/) { return calibration_error(x, x, 0); }), "0 bins, expected 1 to 1000");
}

}  // namespace
}  // namespace lockstep::metrics
