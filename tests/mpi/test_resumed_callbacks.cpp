// The states of callbacks in checkpoints: a run that was stopped and resumed ends as an undisturbed run does, on all
// ranks, and a damaged state ends all ranks with an Error.
#include <limits>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/exit_status.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using train::Callback;
using train::CallbackState;
using train::Orders;

// Two steps an epoch, each followed by an evaluation whose loss never falls: the rate is too small to change a weight.
train::Options without_progress(const fs::path& output, std::int64_t patience) {
  train::Options options = options_for(output, 0);
  options.epochs = 20;
  options.global_batch = 64;
  options.eval_every = 1;
  options.checkpoints.every_steps = 1;
  options.rate.peak = 1e-30;
  options.patience.evaluations = patience;
  return options;
}

train::Options resumed(train::Options options) {
  options.checkpoints.resume = "auto";
  return options;
}

// Stops the run after a step of this start.
class StopsAt : public Callback {
 public:
  explicit StopsAt(std::int64_t step) : step_(step) {}
  void after_step(const train::StepEvent& event, Orders& orders) override {
    if (event.step == step_) orders.stop("a test stops it");
  }

 private:
  std::int64_t step_;
};

const auto kNoCallback = [](train::Session&) {};

TEST(Patience, EndsAResumedRunWhereAnUndisturbedOneEnds) {
  const SharedDirectory shared;
  EXPECT_EQ(run(without_progress(shared.path() / "whole", 3), kNoCallback).updates, 8) << "the first one is the lowest";
  for (const std::int64_t stop : {1, 3, 4, 6, 7}) {  // within epochs, and before their evaluations
    const train::Options options = without_progress(shared.path() / std::to_string(stop), 3);
    const Result first = run(options, [&](train::Session& session) { session.add<StopsAt>(stop); });
    EXPECT_EQ(first.updates, stop);
    EXPECT_EQ(first.status, kExitStopped);
    const Result second = run(resumed(options), kNoCallback);
    EXPECT_EQ(second.updates, 8) << "stopped after step " << stop;
    EXPECT_EQ(second.status, 0);
  }
}

TEST(Patience, ThatIsOverEndsTheRunAgainAndSaysWhy) {
  const SharedDirectory shared;
  train::Options options = without_progress(shared.path() / "run", 2);
  EXPECT_EQ(run(options, kNoCallback).updates, 6);
  const auto files = [&] { return checkpoint::list(shared.path() / "run" / "checkpoints").size(); };
  const std::size_t before = files();
  world().barrier();
  const Result again = run(resumed(options), kNoCallback);
  EXPECT_EQ(again.updates, 6) << "it is complete";
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(files(), before);
  if (world().is_root()) {
    const std::string log = log_of(shared.path() / "run");
    expect_contains(log, "2 evaluations without a loss below ");
    expect_contains(log, " before this start; a --patience above that continues the run: checkpoint of step 6, ending");
    expect_contains(log, "nothing to train: 6 updates");
  }
  world().barrier();
  options.patience.evaluations = 3;
  EXPECT_EQ(run(resumed(options), kNoCallback).updates, 8) << "it goes on where it ended";
  options.patience.evaluations = 0;
  options.epochs = 5;
  EXPECT_EQ(run(resumed(options), kNoCallback).updates, 10) << "without a limit";
  options.patience.evaluations = 2;
  options.epochs = 20;
  EXPECT_EQ(run(resumed(options), kNoCallback).updates, 16) << "the checkpoint has no count: the first is the lowest";
  if (world().is_root()) {
    expect_contains(log_of(shared.path() / "run"),
                    "resume: the checkpoint has a state 'patience' of a callback that this run does not have");
    expect_contains(log_of(shared.path() / "run"),
                    "resume: the checkpoint has no state 'patience' of a callback, which begins anew");
  }
  world().barrier();
}

class NotesTheEnd : public Callback {
 public:
  explicit NotesTheEnd(bool& trained) : trained_(trained) {}
  void end_run(const train::RunEnd& end) override { trained_ = end.trained; }

 private:
  bool& trained_;
};

TEST(RunEnd, AStartThatOnlyMakesUpAnEvaluationHasTrainedNothing) {
  const SharedDirectory shared;
  train::Options options = options_for(shared.path() / "run", 2);
  options.eval_every = 1;
  bool trained = false;
  const Result first = run(options, [&](train::Session& session) {
    session.add<NotesTheEnd>(trained);
    session.add<StopsAt>(2);
  });
  EXPECT_EQ(first.status, kExitStopped) << "its evaluation is due";
  EXPECT_TRUE(trained);
  const Result second = run(resumed(options), [&](train::Session& session) { session.add<NotesTheEnd>(trained); });
  EXPECT_EQ(second.status, 0);
  EXPECT_FALSE(trained);
  if (world().is_root()) expect_contains(log_of(shared.path() / "run"), "nothing to train: 2 updates");
  world().barrier();
}

// Notes the learning rate of each step.
class Rates : public Callback {
 public:
  explicit Rates(std::vector<double>& rates) : rates_(rates) {}
  void after_step(const train::StepEvent& event, Orders& /*orders*/) override { rates_.push_back(event.learning_rate); }

 private:
  std::vector<double>& rates_;
};

TEST(Plateau, AResumedRunHasTheRatesOfAnUndisturbedOne) {
  const SharedDirectory shared;
  const auto options_in = [&](const std::string& name) {
    train::Options options = without_progress(shared.path() / name, 0);
    options.epochs = 5;
    options.rate.kind = optim::ScheduleOptions::Kind::Plateau;
    options.rate.plateau = {.factor = 0.5, .patience = 0};
    options.rate.minimum = 0.2 * options.rate.peak;
    return options;
  };
  std::vector<double> whole;
  run(options_in("whole"), [&](train::Session& session) { session.add<Rates>(whole); });
  const std::vector<double> factors{1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2};
  ASSERT_EQ(whole.size(), factors.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_DOUBLE_EQ(whole[i], factors[i] * 1e-30) << "step " << i;
  for (const std::int64_t stop : {3, 4, 6, 7}) {  // within epochs, and before their evaluations
    const train::Options options = options_in(std::to_string(stop));
    std::vector<double> rates;
    run(options, [&](train::Session& session) {
      session.add<Rates>(rates);
      session.add<StopsAt>(stop);
    });
    run(resumed(options), [&](train::Session& session) { session.add<Rates>(rates); });
    EXPECT_EQ(rates, whole) << "stopped after step " << stop;
  }
}

// Counts steps and remembers values of each type; notes what it gets back.
class Counts : public Callback {
 public:
  struct Seen {
    std::int64_t loads = 0, count = 0, at_begin = -1;
    double low = 0;
    std::string text;
  };
  explicit Counts(Seen& seen) : Callback({.state = "counts"}), seen_(seen) { seen_ = {}; }
  void begin_run(std::int64_t /*step*/) override { seen_.at_begin = seen_.count; }
  void after_step(const train::StepEvent& /*event*/, Orders& /*orders*/) override { ++seen_.count; }
  void save_state(CallbackState& state) override {
    state.set("count", seen_.count + 100 * world().rank());
    state.set("low", -std::numeric_limits<double>::infinity());
    state.set("text", "rank " + std::to_string(world().rank()));
  }
  void load_state(const CallbackState& state) override {
    ++seen_.loads;
    seen_.count = state.integer("count", 0, 50);
    seen_.low = state.number("low");
    seen_.text = state.text("text");
  }

 private:
  Seen& seen_;
};

TEST(State, OfRankZeroComesBackOnAllRanks) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  Counts::Seen seen;
  const auto add = [&](train::Session& session) { session.add<Counts>(seen); };
  run(options_for(output, 3), [&](train::Session& session) {
    add(session);
    session.add<StopsAt>(3);
  });
  EXPECT_EQ(seen.loads, 0) << "a new run";
  run(resumed(options_for(output, 5)), add);
  EXPECT_EQ(seen.loads, 1);
  EXPECT_EQ(seen.at_begin, 3) << "it is there when the run begins";
  EXPECT_EQ(seen.count, 5);
  EXPECT_EQ(seen.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(seen.text, "rank 0");
}

// A state under the name of Counts'.
class Foreign : public Callback {
 public:
  explicit Foreign(std::function<void(CallbackState&)> save, std::function<void()> load = {})
      : Callback({.state = "counts"}), save_(std::move(save)), load_(std::move(load)) {}
  void save_state(CallbackState& state) override { save_(state); }
  void load_state(const CallbackState& /*state*/) override { load_(); }

 private:
  std::function<void(CallbackState&)> save_;
  std::function<void()> load_;
};

TEST(State, ThatCannotBeUsedEndsAllRanks) {
  const SharedDirectory shared;
  struct Case {
    std::function<void(CallbackState&)> save;
    std::string expected;
  };
  const std::vector<Case> cases{
      {[](CallbackState& state) { state.set("low", 1.0); }, "[callback state] there is no 'count'"},
      {[](CallbackState& state) { state.set("count", 1.5); },
       "[callback state] 'count' is a number, expected an integer"},
      {[](CallbackState& state) { state.set("count", "3"); },
       "[callback state] 'count' is a text, expected an integer"},
      {[](CallbackState& state) { state.set("count", 51); }, "[callback state] 'count' is 51, expected 0 to 50"}};
  for (const Case& c : cases) {
    train::Options options = options_for(shared.path() / "run", 4);
    run(options, [&](train::Session& session) {
      session.add<Foreign>(c.save);
      session.add<StopsAt>(2);
    });
    Counts::Seen seen;
    const std::string error =
        error_of([&] { run(resumed(options), [&](train::Session& session) { session.add<Counts>(seen); }); });
    expect_contains(error, "[resume] the state 'counts' of the callback ");
    expect_contains(error, "Counts cannot be used: " + c.expected);
  }
}

TEST(State, ThatOneRankAloneRefusesEndsAllRanks) {
  const SharedDirectory shared;
  const train::Options options = options_for(shared.path() / "run", 4);
  const auto save = [](CallbackState& state) { state.set("x", 1); };
  run(options, [&](train::Session& session) {
    session.add<Foreign>(save);
    session.add<StopsAt>(2);
  });
  const int last = world().size() - 1;
  const std::string error = error_of([&] {
    run(resumed(options), [&](train::Session& session) {
      session.add<Foreign>(save, [&] { check(world().rank() != last, "test", "this rank refuses"); });
    });
  });
  expect_contains(error, "cannot be used: [test] this rank refuses");
}

TEST(State, OfTwoCallbacksNeedsTwoNames) {
  const SharedDirectory shared;
  Counts::Seen seen;
  const std::string error = error_of([&] {
    run(options_for(shared.path() / "run", 1), [&](train::Session& session) {
      session.add<Counts>(seen);
      session.add<Counts>(seen);
    });
  });
  expect_contains(error, "have a state with the name 'counts' in checkpoints, expected different names");
}

}  // namespace
}  // namespace lockstep::test
