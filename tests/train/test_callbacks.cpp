// The callbacks of a session, one by one, with the events that a run would bring them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>

#include "lockstep/core/error.h"
#include "lockstep/train/callbacks/answer_signals.h"
#include "lockstep/train/callbacks/beat.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/callbacks/epoch_meter.h"
#include "lockstep/train/callbacks/evaluate.h"
#include "lockstep/train/callbacks/save_checkpoints.h"
#include "lockstep/train/callbacks/time_limit.h"
#include "lockstep/train/monitor/requests.h"
#include "tests/messages.h"

namespace lockstep::test {
namespace {

using namespace train;
using namespace std::chrono_literals;
using Stage = CallbackList::Stage;

class Named : public Callback {
 public:
  Named(char name, std::string& calls, CallbackNeeds needs = {}) : Callback(needs), name_(name), calls_(calls) {}
  void before_batch() override { calls_ += name_; }
  void vote(StepVote& vote) override {
    for (std::size_t i = 0; i < needs().sums; ++i) vote.add(i, name_);
    for (int i = 0; i < needs().votes; ++i) vote.say_yes(i);
  }
  void after_step(const StepEvent& event, Orders& /*orders*/) override {
    calls_ += name_;
    for (const double sum : event.sums) calls_ += static_cast<char>(sum);
    calls_ += std::to_string(event.votes);
  }

 private:
  char name_;
  std::string& calls_;
};

TEST(CallbackList, CallsReportsThenTheProgramsThenDecisionsWhateverWasAddedFirst) {
  std::string calls;
  CallbackList list;
  list.add(Stage::Program, std::make_unique<Named>('c', calls));
  list.add(Stage::Decide, std::make_unique<Named>('e', calls));
  list.add(Stage::Report, std::make_unique<Named>('a', calls));
  list.add(Stage::Report, std::make_unique<Named>('b', calls));
  list.add(Stage::Program, std::make_unique<Named>('d', calls));
  list.each([](Callback& c) { c.before_batch(); });
  EXPECT_EQ(calls, "abcde");
}

TEST(CallbackList, EachCallbackSeesItsOwnSumsAndVotes) {
  std::string calls;
  CallbackList list;
  list.add(Stage::Decide, std::make_unique<Named>('z', calls, CallbackNeeds{.sums = 1, .votes = 2}));
  list.add(Stage::Program, std::make_unique<Named>('m', calls, CallbackNeeds{.sums = 2}));
  list.add(Stage::Program, std::make_unique<Named>('n', calls, CallbackNeeds{.votes = 1, .settled_weights = true}));
  ASSERT_EQ(list.sums(), 3U);
  EXPECT_TRUE(list.needs_settled_weights());
  std::vector<double> sums(3);
  const std::uint64_t bits = list.vote(sums);
  EXPECT_EQ(bits & kRequestBits, 0U) << "votes are no requests";
  const Totals totals;
  list.after_step({.totals = totals}, bits, sums);
  EXPECT_EQ(calls, "mmm0n1zz3");
}

TEST(CallbackList, RefusesWhatACallbackDidNotDeclareAndMoreVotesThanThereAreBits) {
  class Greedy : public Callback {
   public:
    void vote(StepVote& vote) override { vote.add(0, 1); }
  };
  CallbackList list;
  list.add(Stage::Program, std::make_unique<Greedy>());
  EXPECT_THROW(list.vote({}), Error);
  std::string calls;
  list.add(Stage::Program, std::make_unique<Named>('a', calls, CallbackNeeds{.votes = kMostVotes}));
  EXPECT_THROW(list.add(Stage::Program, std::make_unique<Named>('b', calls, CallbackNeeds{.votes = 1})), Error);
}

class Keeps : public Callback {
 public:
  Keeps(std::string state, std::int64_t value) : Callback({.state = std::move(state)}), value_(value) {}
  void save_state(CallbackState& state) override { state.set("value", value_); }
  void load_state(const CallbackState& state) override { value_ = state.integer("value", 0, 9); }
  std::int64_t value() const { return value_; }

 private:
  std::int64_t value_;
};

Keeps& add_to(CallbackList& list, const char* state, std::int64_t value = 0) {
  auto callback = std::make_unique<Keeps>(state, value);
  Keeps& added = *callback;
  list.add(Stage::Program, std::move(callback));
  return added;
}

TEST(CallbackList, GivesEachCallbackItsOwnStateBack) {
  CallbackList before, after;
  add_to(before, "a", 1);
  add_to(before, "gone", 2);
  add_to(before, "", 3);
  const CallbackStates states = before.save_states();
  EXPECT_EQ(states.size(), 2U) << "one has no state";
  const Keeps &fresh = add_to(after, "new", 7), &kept = add_to(after, "a");
  EXPECT_EQ(after.load_states(states),
            (std::vector<std::string>{"the checkpoint has no state 'new' of a callback, which begins anew",
                                      "the checkpoint has a state 'gone' of a callback that this run does not have"}));
  EXPECT_EQ(kept.value(), 1);
  EXPECT_EQ(fresh.value(), 7);
}

TEST(CallbackList, NamesAStateThatCannotBeUsed) {
  CallbackList list;
  add_to(list, "a", 10);
  const std::string error = error_of([&] { list.load_states(list.save_states()); });
  EXPECT_NE(error.find("[resume] the state 'a' of the callback "), std::string::npos) << error;
  EXPECT_NE(error.find("Keeps cannot be used: [callback state] 'value' is 10, expected 0 to 9"), std::string::npos)
      << error;
}

TEST(CallbackList, RefusesTwoStatesOfOneNameAndNamesThatCannotBeWritten) {
  CallbackList list;
  add_to(list, "a");
  EXPECT_NE(error_of([&] { add_to(list, "a"); }).find("have a state with the name 'a' in checkpoints"),
            std::string::npos);
  EXPECT_NE(error_of([&] { add_to(list, "\xff"); }).find("has the name '\\xff'"), std::string::npos);
  EXPECT_NE(error_of([&] { add_to(list, std::string(65, 'x').c_str()); }).find("expected at most 64 bytes"),
            std::string::npos);
}

TEST(CallbackList, DescribesTypesAndNeeds) {
  CallbackList list;
  std::string calls;
  list.add(Stage::Program, std::make_unique<Named>('a', calls, CallbackNeeds{.sums = 2, .votes = 1}));
  add_to(list, "kept");
  list.add(Stage::Report, std::make_unique<Named>('b', calls, CallbackNeeds{.settled_weights = true}));
  const std::string here = "lockstep::test::(anonymous namespace)::";
  EXPECT_EQ(list.description(), here + "Named: 0 sums, 0 votes, settled weights\n" + here + "Named: 2 sums, 1 votes\n" +
                                    here + "Keeps: 0 sums, 0 votes, state kept\n");
}

TEST(Orders, AreAWordThatSaysWhichAndWhen) {
  Orders none, some, all;
  EXPECT_EQ(none.bits(), 0U);
  some.checkpoint("the clock");
  all.evaluate();
  all.checkpoint();
  all.finish("a test");
  EXPECT_EQ(order_text(0), "no order, and trains the next step");
  EXPECT_EQ(order_text(order_word(OrderPoint::AfterStep, none.bits())), "no order after the step");
  EXPECT_EQ(order_text(order_word(OrderPoint::AfterEvaluation, some.bits())),
            "a checkpoint unless there is one after the evaluation");
  EXPECT_EQ(order_text(order_word(OrderPoint::EndOfEpoch, all.bits())),
            "an evaluation and a checkpoint and to stop and to finish at the end of the epoch");
}

StepEvent step(const Totals& totals, std::int64_t number, bool epoch_ends = false, bool run_ends = false) {
  return {.step = number, .epoch = 2, .totals = totals, .epoch_ends = epoch_ends, .run_ends = run_ends};
}

TEST(EpochMeter, AddsUpStepsOfOneEpochAndLeavesOutSkippedOnes) {
  RunRecord record;
  MetricRule rule{.name = "error"};
  rule.finish = [](std::span<const double> sums, double samples, std::span<double> results) {
    results[0] = sums[0] / samples;
  };
  EpochMeter meter(record, {rule});
  meter.begin_run(0);
  Orders orders;
  meter.begin_epoch({.epoch = 2});
  const Totals applied{.loss = 2, .weight = 3, .samples = 3, .metrics = {{.name = "error", .sums = {6}}}};
  const Totals skipped{.loss = 100,
                       .weight = 1,
                       .samples = 1,
                       .metrics = {{.name = "error", .sums = {std::nan("")}}},
                       .outcome = StepOutcome::Skipped};
  meter.after_step(step(applied, 1), orders);
  meter.after_step(step(skipped, 2), orders);
  EXPECT_EQ(record.epoch.epoch, 1);
  EXPECT_EQ(record.epoch.loss, 6);
  EXPECT_EQ(record.epoch.weight, 3);
  EXPECT_EQ(record.epoch.samples, 3);
  EXPECT_EQ(find_result(record.epoch.metrics, "error"), 2.0);
  meter.begin_epoch({.epoch = 2});
  EXPECT_EQ(record.epoch.samples, 3) << "the rest of an epoch goes on";
  meter.begin_epoch({.epoch = 3});
  EXPECT_EQ(record.epoch.samples, 0);
}

TEST(Evaluate, IsDueEverySoManyEpochsAndAtTheEndOfTheRun) {
  RunRecord record;
  Evaluate evaluate(record, 2);
  const auto is_due = [&](const EpochEvent& event) {
    Orders orders;
    evaluate.end_epoch(event, orders);
    EXPECT_EQ(orders.evaluates(), record.evaluation_due);
    return orders.evaluates();
  };
  EXPECT_FALSE(is_due({.epoch = 1, .whole = true}));
  EXPECT_TRUE(is_due({.epoch = 2, .whole = true}));
  EXPECT_FALSE(is_due({.epoch = 2, .whole = false}));
  EXPECT_TRUE(is_due({.epoch = 3, .whole = false, .run_ends = true}));
}

TEST(Evaluate, OneThatEndsEarlyStaysDueAndIsMadeUp) {
  RunRecord record{.evaluation_due = true};
  Evaluate evaluate(record, 1);
  Totals totals{.loss = 0.5, .samples = 4, .metrics = {{.name = "accuracy", .results = {0.75}}}, .whole = false};
  Orders orders;
  evaluate.after_evaluation({.step = 7, .totals = totals, .scheduled = true}, orders);
  EXPECT_TRUE(record.evaluation_due);
  evaluate.make_up({.epoch = 1}, orders);
  EXPECT_TRUE(orders.evaluates());
  totals.whole = true;
  evaluate.after_evaluation({.step = 7, .totals = totals, .scheduled = false}, orders);
  EXPECT_TRUE(record.evaluation_due) << "the program's own evaluation is not the one that is due";
  evaluate.after_evaluation({.step = 7, .totals = totals, .scheduled = true}, orders);
  EXPECT_FALSE(record.evaluation_due);
  ASSERT_TRUE(record.evaluation);
  EXPECT_EQ(record.evaluation->step, 7);
  EXPECT_EQ(find_result(record.evaluation->metrics, "accuracy"), 0.75);
}

TEST(SaveCheckpoints, EveryUpdatesUnlessAnEvaluationIsDueFirst) {
  RunRecord record;
  SaveCheckpoints save({.updates = 3}, record, SaveCheckpoints::Clock::now());
  const Totals totals;
  const auto saves = [&](const StepEvent& event) {
    Orders orders;
    save.after_step(event, orders);
    return orders.saves();
  };
  EXPECT_FALSE(saves(step(totals, 2)));
  EXPECT_TRUE(saves(step(totals, 3)));
  record.evaluation_due = true;
  EXPECT_FALSE(saves(step(totals, 6, true)));
  Orders after, later;
  save.end_epoch({.epoch = 2, .whole = true}, after);
  EXPECT_TRUE(after.saves()) << "after the evaluation";
  save.end_epoch({.epoch = 3, .whole = true}, later);
  EXPECT_FALSE(later.saves());
}

TEST(SaveCheckpoints, EveryEpochsThatAreWhole) {
  RunRecord record;
  SaveCheckpoints save({.epochs = 2}, record, SaveCheckpoints::Clock::now());
  const auto saves = [&](const EpochEvent& event) {
    Orders orders;
    save.end_epoch(event, orders);
    return orders.saves();
  };
  EXPECT_FALSE(saves({.epoch = 1, .whole = true}));
  EXPECT_TRUE(saves({.epoch = 2, .whole = true}));
  EXPECT_FALSE(saves({.epoch = 2, .whole = false}));
}

TEST(SaveCheckpoints, ByTheClockAsksAllRanksAndSavesWhenTheyKnow) {
  RunRecord record;
  SaveCheckpoints save({.minutes = 5}, record, SaveCheckpoints::Clock::now() - 6min);
  EXPECT_EQ(save.requests(), kCheckpointDue);
  Orders orders;
  const Totals totals;
  StepEvent event = step(totals, 1);
  event.requests = kCheckpointDue;
  save.after_step(event, orders);
  EXPECT_EQ(orders.reasons(), std::vector<std::string>{"the clock"});
  EXPECT_FALSE(orders.stops());
  save.after_checkpoint({.step = 1});
  EXPECT_EQ(save.requests(), 0U);
}

TEST(AnswerSignals, StopsOrSavesForWhatAnyRankWasAsked) {
  AnswerSignals answer;
  request(kCheckpointAsked);
  EXPECT_EQ(answer.requests(), kCheckpointAsked);
  forget_requests(kCheckpointRequests);
  const Totals totals;
  Orders orders;
  answer.after_evaluation({.totals = totals, .scheduled = true, .requests = kCheckpointAsked}, orders);
  EXPECT_EQ(orders.reasons(), std::vector<std::string>{"a signal for a checkpoint"});
  EXPECT_FALSE(orders.stops());
  StepEvent event = step(totals, 1);
  event.requests = kStopAsked;
  answer.after_step(event, orders);
  EXPECT_TRUE(orders.stops());
}

TEST(TimeLimit, AsksAllRanksToStopButNotInAnEvaluationThatIsMadeUp) {
  TimeLimit limit({.time = parse_run_time("1s", "0s"), .began = Deadline::Clock::now() - 10s});
  limit.before_evaluation({.samples = 1, .makes_up = true});
  EXPECT_EQ(limit.requests(), 0U);
  const Totals totals;
  Orders none, orders;
  limit.after_evaluation({.totals = totals, .scheduled = true}, none);
  EXPECT_TRUE(none.reasons().empty());
  EXPECT_EQ(limit.requests(), kTimeIsUp);
  StepEvent event = step(totals, 1);
  event.requests = kTimeIsUp;
  limit.after_step(event, orders);
  EXPECT_TRUE(orders.stops());
  ASSERT_EQ(orders.reasons().size(), 1U);
  EXPECT_NE(orders.reasons()[0].find("is over"), std::string::npos) << orders.reasons()[0];
  TimeLimit elsewhere;
  EXPECT_EQ(elsewhere.requests(), 0U) << "other ranks have no clock";
}

TEST(Beat, TellsTheWatchdogWhereTheRankIs) {
  Heartbeat heartbeat;
  Heartbeat::Row row;
  heartbeat.attach(row);
  Beat beat(heartbeat, Heartbeat::Phase::Loading);
  beat.before_batch();
  EXPECT_EQ(row.phase.load(), Heartbeat::Phase::Loading);
  beat.before_checkpoint(1);
  EXPECT_EQ(row.phase.load(), Heartbeat::Phase::Saving);
  beat.after_checkpoint({});
  EXPECT_EQ(row.phase.load(), Heartbeat::Phase::Outside);
  heartbeat.detach();
}

}  // namespace
}  // namespace lockstep::test
