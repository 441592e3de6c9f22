// The loss among the items of a batch against plain loops.
#include "lockstep/losses/retrieval.h"

#include <cmath>
#include <cstring>

#include "lockstep/core/random.h"
#include "lockstep/ops/slice.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

constexpr std::int64_t kPairs = 5, kPairElements = 3;

struct Vectors {
  std::vector<double> user, item, log_q, weight{1, 0, 1, 0.5, 2};
  std::vector<std::int32_t> ids{4, 7, 4, 9, 1};

  Vectors() {
    RandomStream random(8, 0);
    for (std::int64_t i = 0; i < kPairs * kPairElements; ++i) {
      user.push_back(random.normal());
      item.push_back(random.normal());
    }
    for (std::int64_t i = 0; i < kPairs; ++i) log_q.push_back(random.uniform(-3, -1));
  }
};

// `more`: the items of samples 0 to 2, with ids of their own, are further candidates of all samples.
constexpr std::size_t kMore = 3;
const std::vector<std::int32_t> kMoreIds{7, 3, 1, 0,
                                         0};  // an input has a number for each sample; the first three count

double expected(const Vectors& v, bool with_ids, bool with_q, bool weighted, bool more) {
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < kPairs; ++i) {
    std::vector<double> scores;
    double own = 0;
    for (std::size_t j = 0; j < kPairs; ++j) {
      double score = 0;
      for (std::size_t e = 0; e < kPairElements; ++e)
        score += v.user[i * kPairElements + e] * v.item[j * kPairElements + e];
      score = score / 0.5 - (with_q ? v.log_q[j] : 0);
      if (i == j) own = score;
      if (i == j || !with_ids || v.ids[i] != v.ids[j]) scores.push_back(score);
      if (more && j < kMore && (!with_ids || v.ids[i] != kMoreIds[j])) scores.push_back(score);
    }
    double total = 0;
    for (const double score : scores) total += std::exp(score);
    const double weight = weighted ? v.weight[i] : 1;
    sum += weight * (std::log(total) - own);
    weights += weight;
  }
  return sum / weights;
}

TEST(InBatchSoftmax, IsTheOneOfPlainLoops) {
  const Vectors v;
  for (int which = 0; which < 16; ++which) {
    const bool with_ids = (which & 1) != 0, with_q = (which & 2) != 0, weighted = (which & 4) != 0,
               more = (which & 8) != 0;
    const auto function = [&](const plan::Inputs& in) {
      InBatchOptions options{.temperature = 0.5};
      if (with_ids) options.ids = in["ids"];
      if (with_q) options.log_q = in["log_q"];
      if (more) {
        options.more = slice(in["item"], 0, 0, kMore);
        if (with_ids) options.more_ids = slice(in["more_ids"], 0, 0, kMore);
        if (with_q) options.more_log_q = slice(in["log_q"], 0, 0, kMore);
      }
      return plan::Traced{.loss = in_batch_softmax(in["user"], in["item"], options,
                                                   weighted ? LossWeights{.sample = in["weight"]} : LossWeights{})};
    };
    plan::CompiledModel model({}, function, {.dtype = DType::F64});
    const Type vectors{Shape{kPairs, kPairElements}, DType::F64}, numbers{Shape{kPairs}, DType::F64};
    plan::Plan& plan = model.plan(Mode::Eval, {{"user", vectors},
                                               {"item", vectors},
                                               {"log_q", numbers},
                                               {"weight", numbers},
                                               {"more_ids", {Shape{kPairs}, DType::I32}},
                                               {"ids", {Shape{kPairs}, DType::I32}}});
    const auto fill = [&](const char* name, const auto& values) {
      if (void* to = plan.input(name)) std::memcpy(to, values.data(), values.size() * sizeof values[0]);
    };
    fill("user", v.user);
    fill("item", v.item);
    fill("log_q", v.log_q);
    fill("weight", v.weight);
    fill("ids", v.ids);
    fill("more_ids", kMoreIds);
    if (auto* samples = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) {
      for (std::int64_t i = 0; i < kPairs; ++i) samples[i] = 100 - i;
    }
    plan.run();
    EXPECT_NEAR(plan.loss(), expected(v, with_ids, with_q, weighted, more), 1e-12) << which;
  }
}

TEST(InBatchSoftmax, NamesWhatDoesNotFit) {
  const auto refused = [](Shape item, double temperature, const std::string& message) {
    const auto function = [&](const plan::Inputs& in) {
      return plan::Traced{.loss = in_batch_softmax(in["user"], in["item"], {.temperature = temperature})};
    };
    plan::CompiledModel model({}, function, {.dtype = DType::F64});
    expect_error(
        [&] {
          model.plan(Mode::Eval, {{"user", {Shape{4, 3}, DType::F64}}, {"item", {item, DType::F64}}});
        },
        message);
  };
  refused({4, 2}, 1, "in_batch_softmax");
  refused({4, 3}, 0, "the temperature is 0, expected more than 0");
}

}  // namespace
}  // namespace lockstep
