// Metrics of classes against plain loops over samples and positions.
#include "lockstep/metrics/classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cast.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::metrics {
namespace {

constexpr std::int64_t kClassSamples = 7, kClasses = 4, kClassPoints = 6;
constexpr std::int32_t kIgnored = 255;

// The results of all metrics of a model function over samples [0, kClassSamples), whose sums are those of two parts; of
// metrics of pairs, which are folded here.
class ClassResults {
 public:
  template <class T>
  void input(const std::string& name, Shape of_sample, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    inputs_[name] = {std::move(of_sample),
                     std::is_same_v<T, float> ? DType::F32 : DType::I32,
                     {bytes, bytes + values.size() * sizeof(T)}};
  }

  std::map<std::string, std::vector<double>> of(const plan::ModelFunction& function) {
    plan::CompiledModel model({}, function, {}, {});
    std::map<std::string, std::vector<double>> sums, results;
    std::map<std::string, MetricRule> rules;
    std::map<std::string, std::vector<std::vector<ScoredPair>>> pairs;
    for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, kClassSamples - 3}}) {
      plan::Plan& plan = run(model, first, count);
      for (const plan::PlanMetric& metric : plan.metrics()) {
        rules[metric.rule.name] = metric.rule;
        if (metric.lists > 0) add_pairs(plan, metric, pairs[metric.rule.name]);
        std::vector<double>& mine = sums[metric.rule.name];
        std::size_t at = 0;
        for (const plan::PlanMetric::Sum& sum : metric.sums) {
          mine.resize(std::max(mine.size(), at + sum.elements));
          for (const double value : plan.values(sum)) mine[at++] += value;
        }
      }
    }
    for (auto& [name, lists] : pairs) {
      for (auto& list : lists) sums[name].push_back(folded(list, rules[name]));
    }
    for (auto& [name, values] : sums) {
      results[name].resize(static_cast<std::size_t>(rules[name].results));
      rules[name].finish(values, kClassSamples, results[name]);
    }
    return results;
  }

 private:
  struct Input {
    Shape shape{};
    DType dtype{};
    std::vector<std::byte> bytes{};
  };

  plan::Plan& run(plan::CompiledModel& model, std::int64_t first, std::int64_t count) {
    std::map<std::string, Type> types;
    for (const auto& [name, input] : inputs_) types[name] = {input.shape.batched(count), input.dtype};
    plan::Plan& plan = model.plan(Mode::Eval, types);
    for (const auto& [name, input] : inputs_) {
      const std::size_t bytes = static_cast<std::size_t>(input.shape.elements()) * size_of(input.dtype);
      if (void* to = plan.input(name))
        std::memcpy(to, input.bytes.data() + static_cast<std::size_t>(first) * bytes,
                    static_cast<std::size_t>(count) * bytes);
    }
    plan.run();
    return plan;
  }

  static void add_pairs(const plan::Plan& plan, const plan::PlanMetric& metric,
                        std::vector<std::vector<ScoredPair>>& lists) {
    const Tensor scores = plan.scores(metric), labels = plan.labels(metric), groups = plan.groups(metric);
    lists.resize(metric.lists);
    const std::int64_t inner = scores.elements() / (scores.shape()[0] * scores.shape()[1]);
    for (std::int64_t i = 0; i < scores.elements(); ++i) {
      const ScoredPair pair{scores.data<double>()[static_cast<std::size_t>(i)],
                            labels.data<double>()[static_cast<std::size_t>(i)],
                            groups.empty() ? 0 : groups.data<double>()[static_cast<std::size_t>(i)]};
      if (!std::isnan(pair.label)) lists[static_cast<std::size_t>(i / inner % scores.shape()[1])].push_back(pair);
    }
  }
  static double folded(std::vector<ScoredPair>& list, const MetricRule& rule) {
    std::ranges::sort(list, {}, [](const ScoredPair& pair) { return std::pair(pair.group, pair.score); });
    std::size_t next = 0;
    return rule.ranked([&](ScoredPair& pair) {
      if (next == list.size()) return false;
      pair = list[next++];
      return true;
    });
  }

  std::map<std::string, Input> inputs_;
};

struct Case {
  std::vector<float> logits;         // (samples, classes, points)
  std::vector<std::int32_t> labels;  // (samples, points), class 3 is nowhere
};

// Logits with equal numbers among them; class 3 is predicted and never there.
Case make_case() {
  Case c;
  RandomStream random(5, 0);
  for (std::int64_t i = 0; i < kClassSamples * kClasses * kClassPoints; ++i)
    c.logits.push_back(static_cast<float>(std::floor(random.uniform(-4, 4))));
  for (std::int64_t i = 0; i < kClassSamples * kClassPoints; ++i)
    c.labels.push_back(random.below(8) == 0 ? kIgnored : static_cast<std::int32_t>(random.below(3)));
  return c;
}

float logit(const Case& c, std::int64_t sample, std::int64_t k, std::int64_t point) {
  return c.logits[static_cast<std::size_t>((sample * kClasses + k) * kClassPoints + point)];
}

std::vector<double> confusion_of(const Case& c) {
  std::vector<double> counts(kClasses * kClasses);
  for (std::int64_t s = 0; s < kClassSamples; ++s) {
    for (std::int64_t p = 0; p < kClassPoints; ++p) {
      const std::int32_t there = c.labels[static_cast<std::size_t>(s * kClassPoints + p)];
      if (there == kIgnored) continue;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < kClasses; ++k) best = logit(c, s, k, p) > logit(c, s, best, p) ? k : best;
      ++counts[static_cast<std::size_t>(there * kClasses + best)];
    }
  }
  return counts;
}

TEST(ClassMetrics, OfPositionsFollowFromTheConfusion) {
  const Case c = make_case();
  ClassResults results;
  results.input("logits", {kClasses, kClassPoints}, c.logits);
  results.input("label", {kClassPoints}, c.labels);
  const auto found = results.of([](const plan::Inputs& in) {
    const Value x = in["logits"], y = in["label"];
    const ClassOptions options{.ignore_index = kIgnored};
    plan::Traced traced{.metrics = {accuracy(x, y, kIgnored), confusion_matrix(x, y, options)}};
    for (const ClassScore score :
         {ClassScore::Iou, ClassScore::Dice, ClassScore::Precision, ClassScore::Recall, ClassScore::F1}) {
      traced.metrics.push_back(score_by_class(score, x, y, options));
      traced.metrics.push_back(mean_score(score, x, y, options));
    }
    return traced;
  });
  const std::vector<double> counts = confusion_of(c);
  EXPECT_EQ(found.at("confusion"), counts);
  double right = 0, all = 0;
  std::map<std::string, double> means;
  for (std::size_t k = 0; k < kClasses; ++k) {
    double there = 0, predicted = 0;
    for (std::size_t j = 0; j < kClasses; ++j) {
      there += counts[k * kClasses + j];
      predicted += counts[j * kClasses + k];
    }
    const double hit = counts[k * kClasses + k];
    right += hit;
    all += there;
    const std::map<std::string, double> expected{{"iou", hit / (there + predicted - hit)},
                                                 {"dice", 2 * hit / (there + predicted)},
                                                 {"f1", 2 * hit / (there + predicted)},
                                                 {"precision", predicted > 0 ? hit / predicted : 0},
                                                 {"recall", there > 0 ? hit / there : 0}};
    for (const auto& [name, value] : expected) {
      EXPECT_NEAR(found.at(name + "_by_class")[k], value, 1e-15) << name << " " << k;
      means[name] += value / kClasses;
    }
  }
  EXPECT_EQ(found.at("accuracy")[0], right / all);
  for (const auto& [name, value] : means) EXPECT_NEAR(found.at("mean_" + name)[0], value, 1e-15) << name;
}

// A table and a matrix, however many metrics follow from them; other ignored indices count other positions.
TEST(ClassMetrics, CountTheSamePositionsOnce) {
  for (const bool narrow : {false, true}) {
    const auto function = [&](const plan::Inputs& in) {
      const Value x = narrow ? cast(in["logits"], DType::BF16) : in["logits"], y = in["label"];
      const ClassOptions options{.ignore_index = kIgnored}, none{.ignore_index = {}};
      return plan::Traced{
          .metrics = {accuracy(x, y, kIgnored), confusion_matrix(x, y, options),
                      score_by_class(ClassScore::Iou, x, y, options), mean_score(ClassScore::Iou, x, y, options),
                      mean_score(ClassScore::F1, x, y, options), mean_score(ClassScore::Dice, x, y, none)}};
    };
    plan::CompiledModel model({}, function, {}, {});
    const plan::Plan& plan = model.plan(Mode::Eval, {{"logits", {Shape{2, kClasses, kClassPoints}, DType::F32}},
                                                     {"label", {Shape{2, kClassPoints}, DType::I32}}});
    const auto counted = std::ranges::count_if(
        plan.steps(), [](const plan::PlanStep& step) { return step.op->name() == "class_counts"; });
    EXPECT_EQ(counted, 3) << narrow;
  }
}

TEST(ClassMetrics, AClassThatIsNowhereIsInNoMean) {
  ClassResults results;
  std::vector<float> logits(kClassSamples * kClasses);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = i % kClasses == 1 ? 1.0F : 0.0F;
  results.input("logits", {kClasses}, logits);
  results.input("label", {}, std::vector<std::int32_t>(kClassSamples, 1));
  const auto found = results.of([](const plan::Inputs& in) {
    return plan::Traced{.metrics = {score_by_class(ClassScore::Iou, in["logits"], in["label"]),
                                    mean_score(ClassScore::Iou, in["logits"], in["label"])}};
  });
  EXPECT_EQ(found.at("mean_iou")[0], 1);
  EXPECT_EQ(found.at("iou_by_class")[1], 1);
  EXPECT_TRUE(std::isnan(found.at("iou_by_class")[0]));
}

// The share of pairs, by the definition.
double area_of(const std::vector<std::pair<double, bool>>& scores) {
  double won = 0, pairs = 0;
  for (const auto& [a, positive] : scores) {
    for (const auto& [b, other] : scores) {
      if (!positive || other) continue;
      ++pairs;
      won += a > b ? 1 : a == b ? 0.5 : 0;
    }
  }
  return won / pairs;
}

TEST(ClassMetrics, AucIsTheShareOfPairs) {
  Case c = make_case();
  RandomStream random(6, 0);
  for (float& value : c.logits) value = static_cast<float>(random.uniform(-4, 4));  // no equal scores
  ClassResults results;
  results.input("logits", {kClasses, kClassPoints}, c.logits);
  results.input("label", {kClassPoints}, c.labels);
  const auto found = results.of([](const plan::Inputs& in) {
    return plan::Traced{.metrics = {auc(in["logits"], in["label"], {.ignore_index = kIgnored})}};
  });
  double sum = 0;
  for (std::int64_t k = 0; k < 3; ++k) {  // class 3 is nowhere
    std::vector<std::pair<double, bool>> scores;
    for (std::int64_t s = 0; s < kClassSamples; ++s) {
      for (std::int64_t p = 0; p < kClassPoints; ++p) {
        const std::int32_t there = c.labels[static_cast<std::size_t>(s * kClassPoints + p)];
        if (there == kIgnored) continue;
        double total = 0;
        for (std::int64_t j = 0; j < kClasses; ++j) total += std::exp(static_cast<double>(logit(c, s, j, p)));
        scores.emplace_back(std::exp(static_cast<double>(logit(c, s, k, p))) / total, there == k);
      }
    }
    sum += area_of(scores);
  }
  EXPECT_NEAR(found.at("auc")[0], sum / 3, 1e-12);
}

TEST(ClassMetrics, OfFlagsHaveAPositiveClass) {
  const std::vector<float> logits{0, -1, 2, 2, 0.5F, -3, 2, 1, 0, -1, 4, 2, 1, -2};
  const std::vector<float> target{0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0};
  ClassResults results;
  results.input("logits", {2}, logits);
  results.input("target", {2}, target);
  const auto found = results.of([](const plan::Inputs& in) {
    const Value x = in["logits"], y = in["target"];
    return plan::Traced{.metrics = {accuracy(x, y), positive_score(ClassScore::Precision, x, y),
                                    positive_score(ClassScore::Recall, x, y), positive_score(ClassScore::F1, x, y),
                                    positive_score(ClassScore::Iou, x, y), auc(x, y)}};
  });
  double right = 0, hit = 0, predicted = 0, there = 0;
  std::vector<std::pair<double, bool>> scores;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool says = logits[i] > 0, is = target[i] > 0.5F;
    right += says == is;
    hit += says && is;
    predicted += says;
    there += is;
    scores.emplace_back(static_cast<double>(logits[i]), is);
  }
  EXPECT_EQ(found.at("accuracy")[0], right / static_cast<double>(logits.size()));
  EXPECT_EQ(found.at("precision")[0], hit / predicted);
  EXPECT_EQ(found.at("recall")[0], hit / there);
  EXPECT_EQ(found.at("f1")[0], 2 * hit / (predicted + there));
  EXPECT_EQ(found.at("iou")[0], hit / (predicted + there - hit));
  EXPECT_EQ(found.at("auc")[0], area_of(scores)) << "with ties, exactly";
}

TEST(ClassMetrics, AucOfTwoClassesIsThatOfTheOdds) {
  RandomStream random(9, 0);
  std::vector<float> logits;
  std::vector<std::int32_t> labels;
  std::vector<std::pair<double, bool>> scores;
  for (std::int64_t i = 0; i < kClassSamples; ++i) {
    for (int k = 0; k < 2; ++k) logits.push_back(static_cast<float>(random.uniform(-1, 1)));
    labels.push_back(static_cast<std::int32_t>(i % 2));
    const std::size_t at = logits.size() - 2;
    scores.emplace_back(static_cast<double>(logits[at + 1]) - static_cast<double>(logits[at]), i % 2 == 1);
  }
  ClassResults results;
  results.input("logits", {2}, logits);
  results.input("label", {}, labels);
  const auto function = [](const plan::Inputs& in) {
    return plan::Traced{.metrics = {auc(in["logits"], in["label"])}};
  };
  EXPECT_EQ(results.of(function).at("auc")[0], area_of(scores));
  results.input("label", {}, std::vector<std::int32_t>(kClassSamples, 1));
  EXPECT_TRUE(std::isnan(results.of(function).at("auc")[0])) << "without negatives";
}

TEST(ClassMetrics, GroupedAucIsTheMeanOfThoseOfGroups) {
  const std::vector<float> logits{0, 1, 0.5F, 2, -1, 3, 1}, target{1, 0, 1, 1, 1, 0, 0};
  const std::vector<std::int32_t> group{9, 4, 4, 9, 7, 9, 4};  // 7 has no negative
  ClassResults results;
  results.input("logits", {}, logits);
  results.input("target", {}, target);
  results.input("group", {}, group);
  const auto found = results.of([](const plan::Inputs& in) {
    return plan::Traced{.metrics = {grouped_auc(in["logits"], in["target"], in["group"])}};
  });
  std::map<std::int32_t, std::vector<std::pair<double, bool>>> scores;
  for (std::size_t i = 0; i < logits.size(); ++i)
    scores[group[i]].emplace_back(static_cast<double>(logits[i]), target[i] > 0.5F);
  EXPECT_EQ(found.at("group_auc")[0], (3 * area_of(scores[4]) + 3 * area_of(scores[9])) / 6);
}

TEST(ClassMetrics, ThatDoNotFitAreNamed) {
  ClassResults results;
  results.input("logits", {kClasses}, std::vector<float>(kClassSamples * kClasses));
  results.input("label", {}, std::vector<std::int32_t>(kClassSamples, 9));
  const auto error_of = [&](const auto& make) -> std::string {
    try {
      results.of([&](const plan::Inputs& in) { return plan::Traced{.metrics = {make(in["logits"], in["label"])}}; });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(error_of([](Value x, Value y) { return mean_score(ClassScore::Iou, x, y); }), "is 9, expected a class");
  expect(error_of([](Value x, Value y) { return positive_score(ClassScore::F1, x, y); }), "4 classes, expected 2");
  expect(error_of([](Value x, Value /*y*/) { return confusion_matrix(x, x, {.names = {"a"}}); }), "1 names of classes");
  expect(error_of([](Value x, Value y) {
           Metric metric = auc(x, y);
           metric.rule.in_training = true;
           return metric;
         }),
         "in_training to be false");
}

}  // namespace
}  // namespace lockstep::metrics
