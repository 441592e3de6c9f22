// Several losses of a model: their sum and its gradient are those of one loss written by hand, each is a metric, and
// what cannot be added is refused.
#include <limits>

#include "lockstep/losses/per_sample.h"
#include "lockstep/losses/regression.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

constexpr std::int64_t kBatch = 5, kWidth = 3;

struct Outcome {
  double loss = 0, weight = 0;
  std::map<std::string, double> metrics;
  std::vector<double> gradient;
};

// A model with one parameter, a row of factors on the input x.
Outcome run(const std::function<plan::Traced(const plan::Inputs& in, Value prediction)>& model,
            plan::CompileOptions compile = {}) {
  Parameters parameters;
  const Parameter& a = parameters.add("a", Shape{1, kWidth});
  plan::CompiledModel compiled(
      parameters.named(), [&](const plan::Inputs& in) { return model(in, in.graph().parameter(a) * in["x"]); },
      {.dtype = DType::F64, .seed = 3}, std::move(compile));
  const Type table{Shape{kBatch, kWidth}, DType::F64};
  plan::Plan& plan = compiled.plan(Mode::Train, {{"x", table}, {"t", table}, {"w", {Shape{kBatch}, DType::F64}}});
  for (const char* name : {"x", "t", "w"}) {
    if (plan.input(name) != nullptr) fill_input<double>(plan, name);
  }
  if (auto* w = static_cast<double*>(plan.input("w"))) {
    for (std::int64_t i = 0; i < kBatch; ++i) w[i] = 0.5 + static_cast<double>(i);
  }
  plan.run();
  Outcome outcome{.loss = plan.loss(), .weight = plan.weight(), .metrics = {}, .gradient = {}};
  for (const plan::PlanMetric& metric : plan.metrics()) {
    std::vector<double> sums;
    for (const plan::PlanMetric::Sum& sum : metric.sums) sums.push_back(plan.values(sum)[0]);
    metric.rule.finish(sums, static_cast<double>(kBatch), std::span(&outcome.metrics[metric.rule.name], 1));
    EXPECT_EQ(metric.rule.better, Better::Lower);
  }
  outcome.gradient = values_of(compiled.parameters().read_gradient("a"));
  return outcome;
}

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_NEAR(a.loss, b.loss, 1e-13);
  EXPECT_NEAR(a.weight, b.weight, 1e-13);
  ASSERT_EQ(a.gradient.size(), b.gradient.size());
  for (std::size_t i = 0; i < a.gradient.size(); ++i) EXPECT_NEAR(a.gradient[i], b.gradient[i], 1e-12) << i;
}

TEST(SeveralLosses, AreTheirWeightedSumAndAMetricEach) {
  const Outcome several = run([](const plan::Inputs& in, Value y) {
    return plan::Traced{.losses = {{"data", mean_squared_error(y, in["t"])}, {"size", mean(lockstep::abs(y)), 0.25}}};
  });
  const Outcome by_hand = run([](const plan::Inputs& in, Value y) {
    return plan::Traced{.loss = mean(square(y - in["t"])) + 0.25 * mean(lockstep::abs(y))};
  });
  const Outcome data =
      run([](const plan::Inputs& in, Value y) { return plan::Traced{.loss = mean(square(y - in["t"]))}; });
  expect_equal(several, by_hand);
  EXPECT_EQ(several.weight, static_cast<double>(kBatch));
  ASSERT_EQ(several.metrics.size(), 2U);
  EXPECT_NEAR(several.metrics.at("data"), data.loss, 1e-14);
  EXPECT_NEAR(several.metrics.at("data") + 0.25 * several.metrics.at("size"), several.loss, 1e-13);
}

TEST(SeveralLosses, MayShareAWeightSum) {
  const Outcome several = run([](const plan::Inputs& in, Value y) {
    const Loss data = mean_squared_error(y, in["t"], {.sample = in["w"]});
    const Loss size = l1_loss(y, 0.0 * in["t"], {.sample = in["w"]});
    return plan::Traced{.losses = {{"data", data, 2}, {"size", Loss(size.mean, data.weight), 0.5}}};
  });
  const Outcome by_hand = run([](const plan::Inputs& in, Value y) {
    const Loss data = mean_squared_error(y, in["t"], {.sample = in["w"]});
    const Loss size = l1_loss(y, 0.0 * in["t"], {.sample = in["w"]});
    return plan::Traced{.loss = Loss(2.0 * data.mean + 0.5 * size.mean, data.weight)};
  });
  expect_equal(several, by_hand);
  EXPECT_NE(several.weight, static_cast<double>(kBatch));
}

TEST(SeveralLosses, OfOtherWeightsStandPerSample) {
  const Outcome several = run([](const plan::Inputs& in, Value y) {
    const Loss data = mean_squared_error(y, in["t"], {.sample = in["w"]});
    return plan::Traced{.losses = {{"data", per_sample(data, in["x"])}, {"size", mean(square(y))}}};
  });
  const Outcome data = run([](const plan::Inputs& in, Value y) {
    return plan::Traced{.loss = mean_squared_error(y, in["t"], {.sample = in["w"]})};
  });
  EXPECT_EQ(several.weight, static_cast<double>(kBatch));
  EXPECT_NEAR(several.metrics.at("data"), data.loss * data.weight / static_cast<double>(kBatch), 1e-13);
}

// The weight of a cross entropy is an output of the node that gives its mean.
TEST(SeveralLosses, OfACrossEntropyStandPerSample) {
  const Outcome several = run([](const plan::Inputs& in, Value y) {
    const Loss data = cross_entropy(y, in["t"], {}, {.sample = in["w"]});
    return plan::Traced{.losses = {{"data", per_sample(data, in["x"])}, {"size", mean(square(y)), 0}}};
  });
  const Outcome data = run([](const plan::Inputs& in, Value y) {
    return plan::Traced{.loss = cross_entropy(y, in["t"], {}, {.sample = in["w"]})};
  });
  EXPECT_NEAR(several.loss, data.loss * data.weight / static_cast<double>(kBatch), 1e-13);
  ASSERT_EQ(several.gradient.size(), data.gradient.size());
  for (std::size_t i = 0; i < data.gradient.size(); ++i) EXPECT_NEAR(several.gradient[i], data.gradient[i], 1e-12);
}

TEST(SeveralLosses, ThatCannotBeAddedAreNamed) {
  const auto expect = [](std::vector<plan::PartialLoss> (*losses)(const plan::Inputs& in, Value y), const char* text) {
    expect_error([&] { run([&](const plan::Inputs& in, Value y) { return plan::Traced{.losses = losses(in, y)}; }); },
                 text);
  };
  using Losses = std::vector<plan::PartialLoss>;
  expect(
      [](const plan::Inputs& in, Value y) {
        return Losses{{"a", mean(square(y))}, {"b", mean_squared_error(y, in["t"], {.sample = in["w"]})}};
      },
      "the losses 'a' and 'b' have weight sums of their own");
  expect([](const plan::Inputs&, Value y) { return Losses{{"a", square(y)}}; }, "the loss 'a' is f64(5, 3)");
  expect([](const plan::Inputs&, Value) { return Losses{{"a", Value()}}; }, "the loss 'a' is an empty Value");
  expect([](const plan::Inputs&, Value y) { return Losses{{"loss", mean(y)}}; }, "named 'loss'");
  expect(
      [](const plan::Inputs&, Value y) {
        return Losses{{"a", mean(y)}, {"a", mean(y)}};
      },
      "two metrics are named 'a'");
  expect(
      [](const plan::Inputs&, Value y) {
        return Losses{{"a", mean(y), std::numeric_limits<double>::infinity()}};
      },
      "the factor of the loss 'a' is inf");
  expect_error(
      [] {
        run([](const plan::Inputs&, Value y) { return plan::Traced{.loss = mean(y), .losses = {{"a", mean(y)}}}; });
      },
      "a loss and a list of losses");
  expect_error(
      [] {
        run([](const plan::Inputs& in, Value y) {
          return plan::Traced{.loss = per_sample(mean_squared_error(y, in["t"]), mean(y))};
        });
      },
      "expected (samples, ...)");
}

}  // namespace
}  // namespace lockstep
