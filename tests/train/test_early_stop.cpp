#include "lockstep/train/callbacks/early_stop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::test {
namespace {

using namespace train;

struct Evaluated {
  double loss;
  bool scheduled = true, whole = true;
};

// How many evaluations a run with that patience makes of those; all of them if it is not ended.
std::size_t evaluations(std::int64_t patience, const std::vector<Evaluated>& losses) {
  EarlyStop callback(patience, "loss", false);
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

// Stopped after each of the evaluations in turn, and resumed by another callback with the state of the first.
TEST(EarlyStop, GoesOnWithItsState) {
  const std::vector<double> losses{5, 4, 4, 3, 3.5, NAN, 1, 0};
  for (std::size_t stop = 0; stop < 6; ++stop) {
    EarlyStop before(2, "loss", false), after(2, "loss", false);
    CallbackState state;
    std::int64_t ended = 0;
    for (std::size_t i = 0; i < losses.size() && ended == 0; ++i) {
      const Totals totals{.loss = losses[i], .samples = 8};
      Orders orders;
      (i < stop ? before : after).after_evaluation({.totals = totals, .scheduled = true}, orders);
      if (orders.finishes()) ended = static_cast<std::int64_t>(i) + 1;
      if (i + 1 != stop) continue;
      before.save_state(state);
      after.load_state(state);
    }
    EXPECT_EQ(ended, 6) << "stopped after " << stop;
  }
}

TEST(EarlyStop, ThatIsOverFinishesTheRunAgain) {
  const auto finishes = [](std::int64_t patience, const CallbackState& state) {
    EarlyStop callback(patience, "loss", false);
    callback.load_state(state);
    Orders orders;
    callback.make_up({.epoch = 1}, orders);
    return orders.finishes();
  };
  CallbackState state;
  state.set("lowest", 0.5);
  state.set("without_progress", 2);
  EXPECT_TRUE(finishes(2, state));
  EXPECT_TRUE(finishes(1, state));
  EXPECT_FALSE(finishes(3, state)) << "a larger limit continues the run";
  EXPECT_EQ(EarlyStop(2, "loss", false).needs().state, "patience");
  EXPECT_EQ(EarlyStop(0, "loss", false).needs().state, "") << "without a limit there is nothing to keep";
}

TEST(EarlyStop, RefusesAStateThatIsNone) {
  const auto refuses = [](double lowest, const CallbackState::Value& count) {
    CallbackState state;
    state.set("lowest", lowest);
    state.set("without_progress", count);
    EXPECT_THROW(EarlyStop(2, "loss", false).load_state(state), Error) << lowest;
  };
  refuses(0.5, std::int64_t{-1});
  refuses(0.5, std::numeric_limits<std::int64_t>::max());
  refuses(0.5, 1.0);
  refuses(NAN, std::int64_t{1});
  EXPECT_THROW(EarlyStop(2, "loss", false).load_state({}), Error);
}

}  // namespace
}  // namespace lockstep::test
