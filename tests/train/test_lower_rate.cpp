#include "lockstep/train/callbacks/lower_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::test {
namespace {

using namespace train;

struct EvaluatedLoss {
  double loss;
  bool scheduled = true, whole = true;
};

void evaluate(LowerRate& callback, const EvaluatedLoss& evaluated) {
  const Totals totals{.loss = evaluated.loss, .samples = 8, .whole = evaluated.whole};
  Orders orders;
  callback.after_evaluation({.totals = totals, .scheduled = evaluated.scheduled}, orders);
  EXPECT_EQ(orders.bits(), 0U);
}

const optim::PlateauOptions kOptions{.factor = 0.5, .patience = 1};

TEST(LowerRate, CountsScheduledEvaluationsThatAreWhole) {
  double factor = 1;
  LowerRate callback(kOptions, 0.2, [&](double now) { factor = now; });
  EXPECT_EQ(callback.needs().state, "plateau");
  for (const EvaluatedLoss& each : {EvaluatedLoss{5}, {5}, {5, false}, {5, true, false}}) evaluate(callback, each);
  EXPECT_EQ(factor, 1);
  evaluate(callback, {NAN});
  EXPECT_EQ(factor, 0.5);
  for (int i = 0; i < 8; ++i) evaluate(callback, {5});
  EXPECT_EQ(factor, 0.2) << "the least factor";
}

// Stopped after each of the evaluations in turn, and resumed by another callback with the state of the first.
TEST(LowerRate, GoesOnWithItsState) {
  const std::vector<double> losses{5, 4, 4, 4, 3, 3.5, NAN, 3, 3};
  for (std::size_t stop = 0; stop <= losses.size(); ++stop) {
    double whole = 1, factor = 1;
    LowerRate undisturbed(kOptions, 0, [&](double now) { whole = now; });
    LowerRate before(kOptions, 0, [](double) {}), after(kOptions, 0, [&](double now) { factor = now; });
    for (const double loss : losses) evaluate(undisturbed, {loss});
    for (std::size_t i = 0; i < stop; ++i) evaluate(before, {losses[i]});
    CallbackState state;
    before.save_state(state);
    after.load_state(state);
    for (std::size_t i = stop; i < losses.size(); ++i) evaluate(after, {losses[i]});
    EXPECT_EQ(factor, whole) << "stopped after " << stop;
    EXPECT_EQ(whole, 0.125);
  }
}

TEST(LowerRate, RefusesAStateThatIsNone) {
  const auto refuses = [](double lowest, double factor, std::int64_t count, std::int64_t rest) {
    CallbackState state;
    state.set("lowest", lowest);
    state.set("factor", factor);
    state.set("without_progress", count);
    state.set("rest", rest);
    LowerRate callback(kOptions, 0, [](double) { ADD_FAILURE() << "the factor was taken"; });
    EXPECT_THROW(callback.load_state(state), Error) << lowest << " " << factor << " " << count << " " << rest;
  };
  refuses(NAN, 1, 0, 0);
  refuses(1, 0, 0, 0);
  refuses(1, 1.5, 0, 0);
  refuses(1, NAN, 0, 0);
  refuses(1, 1, -1, 0);
  refuses(1, 1, 0, -1);
}

}  // namespace
}  // namespace lockstep::test
