#include "lockstep/train/callbacks/early_stop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::test {
namespace {

using namespace train;

struct Evaluated {
  double loss;
  bool scheduled = true, whole = true;
};

// How many evaluations a run with that patience makes of those; all of them if it is not ended.
std::size_t evaluations(std::int64_t patience, const std::vector<Evaluated>& losses) {
  EarlyStop callback(patience);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Totals totals{.loss = losses[i].loss, .samples = 8, .whole = losses[i].whole};
    Orders orders;
    callback.after_evaluation(
        {.step = static_cast<std::int64_t>(i), .totals = totals, .scheduled = losses[i].scheduled}, orders);
    EXPECT_EQ(orders.stops(), orders.finishes());
    if (!orders.finishes()) continue;
    EXPECT_NE(orders.reasons().front().find("evaluations without a loss below"), std::string::npos);
    return i + 1;
  }
  return losses.size();
}

TEST(EarlyStop, EndsAfterSoManyEvaluationsWithoutALowerLoss) {
  EXPECT_EQ(evaluations(2, {{5}, {4}, {4}, {3}, {3.5}, {3}, {1}}), 6U);
  EXPECT_EQ(evaluations(1, {{5}, {4}, {4.5}, {3}}), 3U);
  EXPECT_EQ(evaluations(3, {{5}, {6}, {6}, {4}, {6}, {6}}), 6U);
}

TEST(EarlyStop, ALossThatIsNoNumberIsNoProgress) {
  EXPECT_EQ(evaluations(2, {{NAN}, {NAN}, {1}}), 2U);
  EXPECT_EQ(evaluations(2, {{1}, {INFINITY}, {NAN}, {0}}), 3U);
}

TEST(EarlyStop, CountsScheduledEvaluationsThatAreWhole) {
  EXPECT_EQ(evaluations(1, {{5}, {6, false}, {6, true, false}, {4}}), 4U);
  EXPECT_EQ(evaluations(0, {{5}, {6}, {7}, {8}}), 4U);
}

}  // namespace
}  // namespace lockstep::test
