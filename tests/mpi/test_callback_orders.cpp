// Ranks whose callbacks give different orders, or that have made different callbacks: all ranks end at once with an
// Error that names ranks and orders, and none waits for the others.
#include <functional>
#include <map>

#include "tests/mpi/session_run.h"

namespace lockstep::test {
namespace {

using train::Callback;
using train::Orders;

// Of this test alone: a failure poisons a communicator and its relatives. All ranks of the node are in one domain, or
// each is in its own.
comm::Communicator fresh(bool apart) {
  return comm::Communicator::world({.sharing_domain = apart ? std::to_string(world().rank()) : ""});
}

using Give = std::function<void(Orders&)>;

// Gives an order after the second step, at the end of the first epoch, before the second one, or after the evaluation.
class Gives : public Callback {
 public:
  explicit Gives(std::map<std::string, Give> orders) : orders_(std::move(orders)) {}
  void make_up(const train::EpochEvent& event, Orders& orders) override {
    if (event.step > 0) give("epoch", orders);
  }
  void after_step(const train::StepEvent& event, Orders& orders) override {
    if (event.step == 2) give("step", orders);
    if (event.step == 4) give("last step", orders);
  }
  void after_evaluation(const train::EvaluationEvent& /*event*/, Orders& orders) override {
    give("evaluation", orders);
  }
  void end_epoch(const train::EpochEvent& /*event*/, Orders& orders) override { give("end", orders); }

 private:
  void give(const std::string& point, Orders& orders) {
    if (const auto found = orders_.find(point); found != orders_.end()) found->second(orders);
  }
  std::map<std::string, Give> orders_;
};

const Give kNothing = [](Orders&) {};
const Give kSave = [](Orders& orders) { orders.checkpoint(); };
const Give kSaveIfUnsaved = [](Orders& orders) { orders.checkpoint("a test"); };
const Give kEvaluate = [](Orders& orders) { orders.evaluate(); };
const Give kStop = [](Orders& orders) { orders.stop("a test stops it"); };
const Give kFinish = [](Orders& orders) { orders.finish("a test ends it"); };

// Trains two epochs of four steps; the last rank gives `last`, the others `others`.
std::string error_at(const comm::Communicator& comm, const std::string& point, const Give& last, const Give& others,
                     train::Options options) {
  options.epochs = 2;
  options.max_steps = 0;
  options.eval_every = 1;
  return error_of([&] {
    run_on(comm, options, [&](train::Session& session) {
      session.add<Gives>(std::map<std::string, Give>{{point, is_last() ? last : others}});
    });
  });
}

// All ranks end; at least one names `parts`, as another may see first that this one has failed.
void expect_named(const std::string& error, const std::vector<std::string>& parts) {
  int findings = 0;
  for (const std::string& said : world().allgather_strings(error)) {
    EXPECT_NE(said, "no error");
    if (said.find("has failed") != std::string::npos) continue;
    ++findings;
    for (const std::string& part : parts) expect_contains(said, part);
  }
  EXPECT_GE(findings, 1);
}

void expect_refused(const std::string& point, const Give& last, const Give& others, const std::string& of_last,
                    const std::string& of_others, const std::function<void(train::Options&)>& change = {}) {
  if (world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  for (const bool apart : {false, true}) {
    SCOPED_TRACE(formatted("{}, {}", point, apart ? "each rank in its own domain" : "one domain"));
    const SharedDirectory shared;
    train::Options options = options_for(shared.path() / "run", 0);
    if (change) change(options);
    const comm::Communicator comm = fresh(apart);
    const std::string error = error_at(comm, point, last, others, options);
    expect_named(error, {"[ranks] what callbacks order differs: rank ",
                         formatted("rank {} has {}", world().size() - 1, of_last), " has " + of_others});
  }
}

TEST(Orders, OfOneRankAloneAfterAStep) {
  expect_refused("step", kSave, kNothing, "a checkpoint after the step", "no order, and trains the next step");
  expect_refused("step", kNothing, kStop, "no order, and trains the next step", "to stop after the step");
}

TEST(Orders, OfOneRankAloneAfterTheLastStepOfAnEpoch) {
  expect_refused("last step", kSaveIfUnsaved, kNothing, "a checkpoint unless there is one after the step",
                 "an evaluation at the end of the epoch");
}

TEST(Orders, ThatContradictEachOther) {
  expect_refused("step", kStop, kSave, "to stop after the step", "a checkpoint after the step");
  expect_refused("end", kEvaluate, kFinish, "an evaluation at the end of the epoch",
                 "an evaluation and to stop and to finish at the end of the epoch");
  expect_refused("end", kSave, kNothing, "an evaluation and a checkpoint at the end of the epoch",
                 "an evaluation at the end of the epoch");
  expect_refused("evaluation", kStop, kFinish, "to stop after the evaluation",
                 "to stop and to finish after the evaluation");
  expect_refused("epoch", kEvaluate, kNothing, "an evaluation before the next epoch", "no order before the next epoch");
}

// The next step's passes wait for all ranks before they say where a rank is.
TEST(Orders, OfOneRankAloneWithSynchronisedBatchNorm) {
  if (world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const SharedDirectory shared;
  train::Options options = options_for(shared.path() / "run", 3);
  options.trainer.compile.synchronisation.all_norms = true;
  const comm::Communicator comm = fresh(false);
  const std::string error = error_of([&] {
    train::Session session(comm, options, "test_callbacks", "{}", datasets::catalogue());
    session.add<Gives>(std::map<std::string, Give>{{"step", is_last() ? kSave : kNothing}});
    const auto network = models::build_model("resnet20", session.data().classes(), session.data().image_shape());
    train_all(session, *network, models::classify(*network), [] {});
  });
  expect_named(error, {"a checkpoint after the step", "has no order after the step"});
}

TEST(Orders, WithAThreadThatDrivesCommunication) {
  expect_refused(
      "step", kSave, kNothing, "a checkpoint after the step", "no order, and trains the next step",
      [](train::Options& options) { options.trainer.parallel.overlap = train::ParallelOptions::Overlap::Thread; });
}

// One rank's program evaluates by itself, while the others train.
TEST(Orders, AProgramThatEvaluatesOnOneRankAlone) {
  if (world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const SharedDirectory shared;
  const comm::Communicator comm = fresh(false);
  const std::string error = error_of([&] {
    train::Session session(comm, options_for(shared.path() / "run", 3), "test_callbacks", "{}", datasets::catalogue());
    const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
    train_all(session, *network, models::classify(*network), [&] {
      if (is_last()) session.evaluate();
    });
  });
  expect_named(error, {formatted("rank {} has no order before an evaluation by the program", world().size() - 1)});
}

TEST(Orders, ThatAreTheSameAreCarriedOut) {
  for (const bool apart : {false, true}) {
    for (const auto overlap : {train::ParallelOptions::Overlap::Steps, train::ParallelOptions::Overlap::Thread}) {
      const SharedDirectory shared;
      train::Options options = options_for(shared.path() / "run", 0);
      options.trainer.parallel.overlap = overlap;
      const comm::Communicator comm = fresh(apart);
      for (const char* point : {"step", "last step", "end", "evaluation", "epoch"})
        EXPECT_EQ(error_at(comm, point, kSave, kSave, options), "no error") << point;
    }
  }
}

struct Needs : Callback {
  using Callback::Callback;
};
struct Other : Callback {
  using Callback::Callback;
};

// Without a declaration, one rank's votes and sums would be taken for those of another callback.
TEST(Callbacks, ThatDifferBetweenRanksAreNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const SharedDirectory shared;
  const train::Options options = options_for(shared.path() / "run", 1);
  const auto error = [&](const auto& add) {
    return error_of([&] {
      run(options, [&](train::Session& session) {
        session.add<Needs>(train::CallbackNeeds{.sums = 1});
        add(session);
      });
    });
  };
  const auto expect_difference = [&](const std::string& text, const std::string& mine, const std::string& others) {
    expect_contains(text, "[ranks] the list of callbacks must be the same on all ranks: rank 0 ");
    expect_contains(text, mine);
    expect_contains(text, others);
    expect_contains(text, formatted("ranks differ from rank 0: {}", world().size() - 1));
  };
  expect_difference(error([](train::Session& s) { s.add<Needs>(train::CallbackNeeds{.votes = is_last() ? 2 : 1}); }),
                    "Needs: 0 sums, 2 votes'", "Needs: 0 sums, 1 votes'");
  expect_difference(error([](train::Session& s) { s.add<Needs>(train::CallbackNeeds{.sums = is_last() ? 2U : 1U}); }),
                    "Needs: 2 sums, 0 votes'", "Needs: 1 sums, 0 votes'");
  expect_difference(error([](train::Session& s) { s.add<Needs>(train::CallbackNeeds{.settled_weights = is_last()}); }),
                    "0 sums, 0 votes, settled weights'", "0 sums, 0 votes'");
  expect_difference(error([](train::Session& s) { s.add<Needs>(train::CallbackNeeds{.state = is_last() ? "x" : ""}); }),
                    "0 sums, 0 votes, state x'", "0 sums, 0 votes'");
  expect_difference(error([](train::Session& s) {
                      if (is_last())
                        s.add<Other>();
                      else
                        s.add<Needs>();
                    }),
                    "Other: 0 sums", "Needs: 0 sums");
  expect_difference(error([](train::Session& s) {
                      if (is_last()) s.add<Needs>();
                    }),
                    "Needs: 0 sums, 0 votes'", "has ''");
}

}  // namespace
}  // namespace lockstep::test
