// Metrics against plain loops; and their sums over two halves are those of the whole.
#include "lockstep/metrics/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/metrics/units.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::metrics {
namespace {

constexpr std::int64_t kSamples = 6, kChannels = 3, kPoints = 4;

using Sums = std::map<std::string, std::vector<double>>;
using Results = std::map<std::string, std::vector<double>>;

// Runs a model function that returns metrics alone on samples [first, first + count) of two inputs.
class Runner {
 public:
  explicit Runner(plan::ModelFunction function) : model_({}, std::move(function), {}, {}) {}

  Sums run(const std::vector<float>& p, const std::vector<float>& t, const std::vector<std::int32_t>& label,
           std::int64_t first, std::int64_t count) {
    const Type field{Shape{count, kChannels, kPoints}, DType::F32}, logits{Shape{count, kChannels}, DType::F32};
    plan::Plan& plan = model_.plan(
        Mode::Eval, {{"p", field}, {"t", field}, {"logits", logits}, {"label", {Shape{count}, DType::I32}}});
    copy(plan, "p", p.data() + first * kChannels * kPoints, count * kChannels * kPoints);
    copy(plan, "t", t.data() + first * kChannels * kPoints, count * kChannels * kPoints);
    copy(plan, "logits", p.data() + first * kChannels, count * kChannels);
    copy(plan, "label", label.data() + first, count);
    plan.run();
    Sums sums;
    for (const plan::PlanMetric& metric : plan.metrics()) {
      rules_[metric.rule.name] = metric.rule;
      for (const plan::PlanMetric::Sum& sum : metric.sums) {
        const auto values = plan.values(sum);
        sums[metric.rule.name].insert(sums[metric.rule.name].end(), values.begin(), values.end());
      }
    }
    return sums;
  }

  Results finish(const Sums& sums, std::int64_t samples) const {
    Results results;
    for (const auto& [name, values] : sums) {
      const MetricRule& rule = rules_.at(name);
      results[name].resize(static_cast<std::size_t>(rule.results));
      rule.finish(values, static_cast<double>(samples), results[name]);
    }
    return results;
  }

 private:
  template <class T>
  static void copy(plan::Plan& plan, const std::string& name, const T* from, std::int64_t elements) {
    if (void* to = plan.input(name)) std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(T));
  }

  plan::CompiledModel model_;
  std::map<std::string, MetricRule> rules_;
};

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() {
    for (std::size_t i = 0; i < p_.size(); ++i) {
      p_[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
      t_[i] = static_cast<float>(std::cos(1.3 * static_cast<double>(i)));
    }
  }
  Results of_whole(Runner& runner) { return runner.finish(runner.run(p_, t_, label_, 0, kSamples), kSamples); }
  Results of_parts(Runner& runner) {
    Sums all = runner.run(p_, t_, label_, 0, 2);
    for (const auto& [name, values] : runner.run(p_, t_, label_, 2, kSamples - 2)) {
      for (std::size_t i = 0; i < values.size(); ++i) all[name][i] += values[i];
    }
    return runner.finish(all, kSamples);
  }

  std::vector<float> p_ = std::vector<float>(kSamples * kChannels * kPoints), t_ = p_;
  std::vector<std::int32_t> label_{0, 2, 1, 1, 0, 2};
};

TEST_F(MetricsTest, OfFieldsAgreeWithPlainLoops) {
  Runner runner([](const plan::Inputs& in) {
    const Value p = in["p"], t = in["t"];
    return plan::Traced{
        .metrics = {mean_absolute_error(p, t), root_mean_squared_error(p, t), r_squared(p, t), channel_errors(p, t)}};
  });
  double absolute = 0, squared = 0, sum = 0, squares = 0;
  std::vector<double> of_channel(kChannels);
  for (std::size_t i = 0; i < p_.size(); ++i) {
    const double p = static_cast<double>(p_[i]), t = static_cast<double>(t_[i]), d = p - t;
    absolute += std::abs(d);
    squared += d * d;
    sum += t;
    squares += t * t;
    of_channel[i / kPoints % kChannels] += d * d;
  }
  const double n = static_cast<double>(p_.size());
  for (const Results& results : {of_whole(runner), of_parts(runner)}) {
    EXPECT_NEAR(results.at("mae")[0], absolute / n, 1e-12);
    EXPECT_NEAR(results.at("rmse")[0], std::sqrt(squared / n), 1e-12);
    EXPECT_NEAR(results.at("r2")[0], 1 - squared / (squares - sum * sum / n), 1e-12);
    ASSERT_EQ(results.at("rmse_by_channel").size(), kChannels);
    for (std::size_t c = 0; c < of_channel.size(); ++c) {
      EXPECT_NEAR(results.at("rmse_by_channel")[c], std::sqrt(of_channel[c] / (n / kChannels)), 1e-12);
    }
  }
}

TEST_F(MetricsTest, R2OfEqualTargetsIsNoNumber) {
  Runner runner([](const plan::Inputs& in) { return plan::Traced{.metrics = {r_squared(in["p"], in["t"])}}; });
  for (const float target : {0.0F, 0.1F, -1e6F}) {
    std::ranges::fill(t_, target);
    for (const Results& results : {of_whole(runner), of_parts(runner)})
      EXPECT_TRUE(std::isnan(results.at("r2")[0])) << target << ": " << results.at("r2")[0];
  }
  t_[5] = -1.001e6F;
  EXPECT_FALSE(std::isnan(of_whole(runner).at("r2")[0])) << "one target differs";
}

TEST_F(MetricsTest, OfClassesAgreeWithPlainLoops) {
  Runner runner([](const plan::Inputs& in) {
    const Value logits = in["logits"], label = in["label"];
    return plan::Traced{.metrics = {accuracy(logits, label), top_k(logits, label, 2),
                                    perplexity(cross_entropy(logits, label), logits)}};
  });
  double first = 0, second = 0, loss = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const float* row = p_.data() + i * kChannels;
    const auto mine = static_cast<std::size_t>(label_[static_cast<std::size_t>(i)]);
    int larger = 0;
    double sum = 0;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      larger += row[c] > row[mine];
      sum += std::exp(static_cast<double>(row[c]));
    }
    first += larger < 1;
    second += larger < 2;
    loss += std::log(sum) - static_cast<double>(row[mine]);
  }
  for (const Results& results : {of_whole(runner), of_parts(runner)}) {
    EXPECT_EQ(results.at("accuracy")[0], first / kSamples);
    EXPECT_EQ(results.at("top2")[0], second / kSamples);
    EXPECT_NEAR(results.at("perplexity")[0], std::exp(loss / kSamples), 1e-5);
  }
}

TEST_F(MetricsTest, ErrorsInUnitsAreThoseOfRestoredValues) {
  // Channel 0 alone; then channels 1 and 2, by their numbers and by logarithms. Channels last: points are the channels.
  const std::vector<TargetUnits> affine{{.name = "a", .shift = {7}, .scale = {3}},
                                        {.name = "b", .channels = 2, .shift = {1, -2}, .scale = {0.5, 20}}};
  const std::vector<TargetUnits> logs{
      {.name = "c", .channels = 3, .shift = {0.5, 1, 2}, .scale = {1, 2, 3}, .logarithm = true}};
  const std::vector<TargetUnits> last{{.name = "d", .channels = kPoints, .shift = {4}, .scale = {5}}};
  const auto restored = [&](const std::vector<TargetUnits>& units, float value, std::size_t channel) {
    for (const TargetUnits& one : units) {
      if (channel >= static_cast<std::size_t>(one.channels)) {
        channel -= static_cast<std::size_t>(one.channels);
        continue;
      }
      const std::size_t c = one.scale.size() == 1 ? 0 : channel;
      const double x = static_cast<double>(value) * one.scale[c] + one.shift[c];
      return std::pair(one.name, one.logarithm ? std::exp(x) : x);
    }
    return std::pair(std::string(), 0.0);
  };
  for (const auto& pair : {std::pair(affine, 1), std::pair(logs, 1), std::pair(last, 2)}) {
    const std::vector<TargetUnits>& units = pair.first;
    const int axis = pair.second;
    Runner runner([&](const plan::Inputs& in) {
      return plan::Traced{.metrics = errors_in_units(in["p"], in["t"], units, axis)};
    });
    std::map<std::string, double> squared, absolute, count;
    for (std::size_t i = 0; i < p_.size(); ++i) {
      const std::size_t channel = axis == 1 ? i / kPoints % kChannels : i % kPoints;
      const auto [name, p] = restored(units, p_[i], channel);
      const double d = p - restored(units, t_[i], channel).second;
      squared[name] += d * d;
      absolute[name] += std::abs(d);
      ++count[name];
    }
    for (const Results& results : {of_whole(runner), of_parts(runner)}) {
      for (std::size_t u = 0; u < units.size(); ++u) {
        const std::string& name = units[u].name;
        const double rmse = std::sqrt(squared[name] / count[name]), mae = absolute[name] / count[name];
        EXPECT_NEAR(results.at("rmse_in_units").at(u), rmse, 1e-12 * rmse) << name;
        EXPECT_NEAR(results.at("mae_in_units").at(u), mae, 1e-12 * mae) << name;
      }
    }
  }
}

std::string error_of(const plan::ModelFunction& function) {
  try {
    Runner runner(function);
    runner.run(std::vector<float>(72), std::vector<float>(72), std::vector<std::int32_t>(6), 0, kSamples);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(MetricsTest, ThatDoNotFitAreNamed) {
  const auto expect = [](const plan::ModelFunction& function, const std::string& part) {
    EXPECT_NE(error_of(function).find(part), std::string::npos) << error_of(function);
  };
  expect([](const plan::Inputs& in) { return plan::Traced{.metrics = {mean_absolute_error(in["p"], in["logits"])}}; },
         "mae: the prediction is f32(6, 3, 4) and the target f32(6, 3), expected equal shapes");
  expect([](const plan::Inputs& in) { return plan::Traced{.metrics = {mean_of("a b", in["p"])}}; },
         "a metric is named 'a b', expected 1 to 64 visible ASCII characters");
  expect([](const plan::Inputs& in) { return plan::Traced{.metrics = {mean_of("p", in["p"])}}; },
         "metric 'p' sums f32(6, 3, 4), expected f64");
  expect(
      [](const plan::Inputs& in) {
        const Metric one = accuracy(in["logits"], in["label"]);
        return plan::Traced{.metrics = {one, one}};
      },
      "two metrics are named 'accuracy'");
  expect(
      [](const plan::Inputs& in) {
        return plan::Traced{.metrics = errors_in_units(in["p"], in["t"], {{.name = "a"}}, 1)};
      },
      "the units are those of 1 channels, expected those of the target's 3");
}

}  // namespace
}  // namespace lockstep::metrics
