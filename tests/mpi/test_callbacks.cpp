// Callbacks of a program in a session: what rides in the control block, what stops a run, and the order of calls.
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/callbacks/callback.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/ops/cross_entropy.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using train::Callback;
using train::Orders;

// Large whole numbers, other ones in each step, whose sum over ranks is exact in f64; and two questions.
class Adds : public Callback {
 public:
  Adds(double base, int& seen) : Callback({.sums = 2, .votes = 2}), base_(base), seen_(seen) {}
  void vote(train::StepVote& vote) override {
    ++asked_;
    vote.add(0, base_ + static_cast<double>(asked_ * 100 + world().rank()));
    vote.add(1, 0.5);
    vote.add(1, 0.5);
    if (asked_ % world().size() == world().rank()) vote.say_yes(1);
  }
  void after_step(const train::StepEvent& event, Orders& /*orders*/) override {
    double expected = 0;
    for (int r = 0; r < world().size(); ++r) expected += base_ + static_cast<double>(asked_ * 100 + r);
    ASSERT_EQ(event.sums.size(), 2U);
    EXPECT_EQ(event.sums[0], expected) << "step " << event.step;
    EXPECT_EQ(event.sums[1], world().size());
    EXPECT_EQ(event.votes, 2U) << "one rank said yes to the second question, none to the first";
    ++seen_;
  }

 private:
  double base_;
  int& seen_;
  std::int64_t asked_ = 0;
};

TEST(Callbacks, SumsOverRanksRideInTheControlBlockAndAreExact) {
  for (const std::int64_t shards : {0, 4}) {
    const SharedDirectory shared;
    train::Options options = options_for(shared.path() / "run", 6);
    options.trainer.shards = shards;
    int first = 0, second = 0;
    const Result result = run(options, [&](train::Session& session) {
      session.add<Adds>(std::ldexp(1.0, 50), first);
      session.add(std::make_unique<Callback>());  // one that needs nothing
      session.add<Adds>(-7.0, second);
    });
    EXPECT_EQ(result.updates, 6) << shards << " shards";
    EXPECT_EQ(first, 6);
    EXPECT_EQ(second, 6);
  }
}

// The last rank alone asks, before step 3; all learn of it in that step.
class AsksToStop : public Callback {
 public:
  explicit AsksToStop(bool finishes) : Callback({.votes = 1}), finishes_(finishes) {}
  void vote(train::StepVote& vote) override {
    if (++steps_ == 3 && world().rank() == world().size() - 1) vote.say_yes(0);
  }
  void after_step(const train::StepEvent& event, Orders& orders) override {
    EXPECT_EQ(event.votes, event.step == 3 ? 1U : 0U) << "step " << event.step;
    if (event.votes == 0) return;
    finishes_ ? orders.finish("a test ends it") : orders.stop("a test stops it");
  }

 private:
  bool finishes_;
  int steps_ = 0;
};

TEST(Callbacks, AVoteOfOneRankStopsAllAfterTheSameStepWithACheckpoint) {
  for (const bool finishes : {false, true}) {
    const SharedDirectory shared;
    const fs::path output = shared.path() / "run";
    const Result result =
        run(options_for(output, 10), [&](train::Session& session) { session.add<AsksToStop>(finishes); });
    EXPECT_EQ(result.updates, 3);
    EXPECT_EQ(result.status, finishes ? 0 : kExitStopped);
    EXPECT_EQ(world().allgather(result.updates),
              std::vector<std::int64_t>(static_cast<std::size_t>(world().size()), 3));
    world().barrier();
    EXPECT_TRUE(fs::exists(checkpoint::path_for(output / "checkpoints", 3)));
  }
}

// Notes which function is called when, and what the run has written by then.
class Notes : public Callback {
 public:
  Notes(std::string name, std::vector<std::string>& calls, fs::path output)
      : name_(std::move(name)), calls_(calls), output_(std::move(output)) {}
  void begin_run(std::int64_t step) override { note("begin_run " + std::to_string(step)); }
  void begin_epoch(const train::EpochEvent& event) override { note("begin_epoch " + std::to_string(event.epoch)); }
  void before_batch() override { note("before_batch"); }
  void vote(train::StepVote& /*vote*/) override { note("vote"); }
  void after_step(const train::StepEvent& event, Orders& /*orders*/) override {
    note("after_step " + std::to_string(event.step));
    if (world().is_root()) {
      EXPECT_EQ(metrics("train"), event.step) << "the step's record is written before";
      EXPECT_EQ(checkpoints(), 0) << "its checkpoint comes after";
    }
  }
  void before_evaluation(const train::EvaluationStart& start) override {
    note("before_evaluation " + std::to_string(start.samples));
  }
  void after_evaluation(const train::EvaluationEvent& event, Orders& /*orders*/) override {
    note(event.scheduled ? "after_evaluation" : "after_evaluation of the program's");
    if (world().is_root() && event.scheduled) {
      EXPECT_EQ(metrics("eval"), 1);
    }
  }
  void end_epoch(const train::EpochEvent& event, Orders& /*orders*/) override {
    note(event.whole ? "end_epoch whole" : "end_epoch");
  }
  void before_checkpoint(std::int64_t step) override { note("before_checkpoint " + std::to_string(step)); }
  void after_checkpoint(const train::CheckpointEvent& event) override {
    note("after_checkpoint " + std::to_string(event.step));
  }
  void end_run(const train::RunEnd& end) override {
    note("end_run " + std::to_string(end.step));
    if (world().is_root()) {
      EXPECT_EQ(checkpoints(), 1) << "the last checkpoint is on the disk";
    }
  }

 private:
  void note(const std::string& call) { calls_.push_back(name_ + ": " + call); }
  std::int64_t metrics(const std::string& split) const {
    std::ifstream in(output_ / "metrics.jsonl");
    std::int64_t count = 0;
    for (std::string line; std::getline(in, line);) count += nlohmann::json::parse(line)["split"] == split ? 1 : 0;
    return count;
  }
  std::int64_t checkpoints() const {
    std::int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(output_ / "checkpoints"))
      count += entry.path().extension() == ".h5" ? 1 : 0;
    return count;
  }
  std::string name_;
  std::vector<std::string>& calls_;
  fs::path output_;
};

TEST(Callbacks, AreCalledInTheDocumentedOrder) {
  const SharedDirectory shared;
  train::Options options = options_for(shared.path() / "run", 0);
  options.epochs = 1;
  options.global_batch = 64;
  options.log_every = 1;
  options.eval_every = options.checkpoints.every_epochs = 1;
  std::vector<std::string> calls;
  run(options, [&](train::Session& session) {
    session.add<Notes>("a", calls, shared.path() / "run");
    session.add<Notes>("b", calls, shared.path() / "run");
  });
  std::vector<std::string> expected;
  for (const char* call : {"begin_run 0", "begin_epoch 1", "before_batch", "vote", "after_step 1", "before_batch",
                           "vote", "after_step 2", "end_epoch whole", "before_evaluation 32", "after_evaluation",
                           "before_checkpoint 2", "after_checkpoint 2", "end_run 2"}) {
    for (const char* name : {"a: ", "b: "}) expected.push_back(name + std::string(call));
  }
  EXPECT_EQ(calls, expected);
}

// Orders a checkpoint after the last step of an epoch, before the evaluation that is due then.
class SavesAtTheEnd : public Callback {
 public:
  void after_step(const train::StepEvent& event, Orders& orders) override {
    if (event.epoch_ends) orders.checkpoint("a test saves");
  }
};

TEST(Callbacks, ACheckpointBeforeAnEvaluationIsWrittenAgainWithIt) {
  const SharedDirectory shared;
  train::Options options = options_for(shared.path() / "run", 0);
  options.epochs = 2;
  options.eval_every = 1;
  EXPECT_EQ(run(options, [](train::Session& session) { session.add<SavesAtTheEnd>(); }).updates, 8);
  if (world().is_root()) {
    const auto saved = checkpoint::list(shared.path() / "run" / "checkpoints");
    EXPECT_EQ(saved.size(), 2U);
    for (const auto& entry : saved) EXPECT_TRUE(checkpoint::score_of(checkpoint::read_note(entry.path))) << entry.path;
  }
  world().barrier();
}

TEST(Callbacks, OfAProgramAreRefusedAfterBuild) {
  const SharedDirectory shared;
  train::Session session(world(), options_for(shared.path() / "run", 1), "test_callbacks", "{}", datasets::catalogue());
  const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
  session.build(*network, models::classify(*network));
  EXPECT_NE(error_of([&] { session.add(std::make_unique<Callback>()); }).find("add() after build()"),
            std::string::npos);
}

// Weights in after_step() are those of the step, also where updates between nodes may still be under way.
class ReadsWeights : public Callback {
 public:
  ReadsWeights(train::Session& session, std::vector<Tensor>& found)
      : Callback({.settled_weights = true}), session_(session), found_(found) {}
  void after_step(const train::StepEvent& /*event*/, Orders& /*orders*/) override {
    plan::ParameterStore& store = session_.trainer().model().parameters();
    found_.push_back(store.read(store.parameters().front().name));
  }

 private:
  train::Session& session_;
  std::vector<Tensor>& found_;
};

TEST(Callbacks, FindSettledWeightsIfTheyAskForThem) {
  std::array<std::vector<Tensor>, 2> found;
  for (std::size_t i = 0; i < 2; ++i) {
    const SharedDirectory shared;
    train::Options options = options_for(shared.path() / "run", 3);
    options.trainer.parallel.path = i == 0 ? parallel::AllreducePath::Auto : parallel::AllreducePath::Messages;
    options.trainer.shards = 4;
    run(options, [&](train::Session& session) { session.add<ReadsWeights>(session, found[i]); });
    ASSERT_EQ(found[i].size(), 3U);
  }
  for (std::size_t step = 0; step < 3; ++step) {
    const Tensor &a = found[0][step], &b = found[1][step];
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << "after step " << step + 1;
  }
}

// Of a model that counts no correct predictions, a run has no accuracy.
Result run_without_counts(const train::Options& options) {
  train::Session session(world(), options, "test_callbacks", "{}", datasets::catalogue());
  const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
  const plan::ModelFunction model = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = cross_entropy((*network)(in["image"]), in["label"])};
  };
  return train_all(session, *network, model, [] {});
}

train::Options evaluated(const fs::path& output) {
  train::Options options = options_for(output, 0);
  options.epochs = 2;
  options.log_every = 1;
  options.eval_every = options.checkpoints.every_epochs = 1;
  return options;
}

TEST(Accuracy, IsNotWrittenOfAModelThatDoesNotCount) {
  const SharedDirectory shared;
  train::Options options = evaluated(shared.path() / "run");
  options.checkpoints.keep = "last:1,best:loss";
  options.logging.records = "dllogger";
  EXPECT_EQ(run_without_counts(options).updates, 8);
  if (world().is_root()) {
    const std::string log = log_of(shared.path() / "run");
    expect_contains(log, "; evaluation loss ");
    EXPECT_EQ(log.find("accuracy"), std::string::npos) << log;
    std::ifstream in(shared.path() / "run" / "metrics.jsonl");
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines)
      EXPECT_FALSE(nlohmann::json::parse(line).contains("accuracy")) << line;
    EXPECT_EQ(lines, 8 + 2 + 2) << "steps, epochs, evaluations";
    std::ifstream records(shared.path() / "run" / "dllogger.json");
    const std::string text(std::istreambuf_iterator<char>(records), {});
    expect_contains(text, "DLLL {");
    EXPECT_EQ(text.find("top1"), std::string::npos) << text;
    const auto saved = checkpoint::list(shared.path() / "run" / "checkpoints");
    ASSERT_FALSE(saved.empty());
    const auto score = checkpoint::score_of(checkpoint::read_note(saved.back().path));
    ASSERT_TRUE(score) << "the loss is known";
    EXPECT_TRUE(score->metrics.empty());
  }
  world().barrier();
}

TEST(Accuracy, CannotChooseCheckpointsOfAModelThatDoesNotCount) {
  const SharedDirectory shared;
  train::Options options = evaluated(shared.path() / "run");
  options.checkpoints.keep = "last:2,best:accuracy";
  expect_contains(error_of([&] { run_without_counts(options); }),
                  "--keep names the metric 'accuracy', and the model has none of this name that can be compared; "
                  "expected one of loss");
  EXPECT_TRUE(checkpoint::list(shared.path() / "run" / "checkpoints").empty()) << "refused before the first step";
  EXPECT_EQ(run(options, [](train::Session&) {}).updates, 8) << "of a model that counts";
}

}  // namespace
}  // namespace lockstep::test
