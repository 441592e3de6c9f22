// Requests of one rank that all ranks learn of after the same step, and evaluations that end early for one.
#include "lockstep/train/monitor/requests.h"

#include <gtest/gtest.h>

#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

std::uint64_t asks_if(bool asks, train::Request request) { return asks ? std::uint64_t{request} : 0; }

TEST(Requests, OfAnyRankAreKnownToAllAfterTheStepInWhichTheyWereMade) {
  Rig rig(world(), {});
  std::uint64_t mine = 0;
  rig.trainer->listen([&] { return mine; });
  for (int asking = 0; asking < world().size(); ++asking) {
    mine = asks_if(world().rank() == asking, train::kCheckpointAsked);
    rig.train(1);
    EXPECT_EQ(rig.trainer->requests(), train::kCheckpointAsked) << "rank " << asking << " asked";
    mine = 0;
    rig.train(1);
    EXPECT_EQ(rig.trainer->requests(), 0U) << "nobody asked";
  }
}

TEST(Requests, OfTwoRanksAreBothKnown) {
  Rig rig(world(), {});
  const bool first = world().rank() == 0, last = world().rank() == world().size() - 1;
  rig.trainer->listen([&] { return asks_if(first, train::kTimeIsUp) | asks_if(last, train::kCheckpointAsked); });
  rig.train(1);
  EXPECT_EQ(rig.trainer->requests(), train::kTimeIsUp | train::kCheckpointAsked);
}

TEST(Requests, AnEvaluationEndsEarlyForTheRankThatAsksAndIsNotWhole) {
  Rig rig(world(), {});
  data::Loader evaluated(*rig.dataset, rig.trainer->sampler(*rig.dataset, {.shuffle = false, .global_batch = 64}), {},
                         {.threads = 0});
  const train::Totals all = rig.trainer->evaluate(evaluated);
  EXPECT_TRUE(all.whole);
  EXPECT_EQ(all.samples, rig.dataset->size());

  int looks = 0;
  const bool asks = world().rank() == world().size() - 1;
  rig.trainer->listen([&] { return asks_if(asks && ++looks > 2, train::kStopAsked); }, train::kStopRequests);
  evaluated.seek({});
  const train::Totals part = rig.trainer->evaluate(evaluated);
  EXPECT_FALSE(part.whole) << "on all ranks";
  EXPECT_LT(part.samples, rig.dataset->size());
  EXPECT_EQ(rig.trainer->requests(), train::kStopAsked);

  rig.trainer->listen([] { return std::uint64_t{train::kCheckpointAsked}; }, train::kStopRequests);
  evaluated.seek({});
  const train::Totals again = rig.trainer->evaluate(evaluated);
  EXPECT_TRUE(again.whole) << "what does not end it waits";
  EXPECT_EQ(again.loss, all.loss);
  EXPECT_EQ(rig.trainer->requests(), train::kCheckpointAsked);
}

// The last rank's loader, model or caller may fail in the middle of an evaluation: the others of its node do not wait.
TEST(Requests, ARankThatFailsInAnEvaluationIsNotWaitedFor) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else waits";
  const int last = world().size() - 1;
  Rig rig(comm::Communicator::world(), {});
  data::Loader evaluated(*rig.dataset, rig.trainer->sampler(*rig.dataset, {.shuffle = false, .global_batch = 64}), {},
                         {.threads = 0});
  int looks = 0;
  rig.trainer->listen([&]() -> std::uint64_t {
    if (world().rank() == last && ++looks > 2) throw Error("the disk is gone");
    return 0;
  });
  try {
    rig.trainer->evaluate(evaluated);
    ADD_FAILURE() << "the evaluation ended as if nothing had happened";
  } catch (const PeerError& error) {
    EXPECT_NE(world().rank(), last) << error.what();
    // Perhaps of another onlooker, who has failed for the same reason.
    EXPECT_NE(std::string(error.what()).find("of this node has failed"), std::string::npos) << error.what();
  } catch (const Error& error) {
    EXPECT_EQ(world().rank(), last) << "an onlooker's error: " << error.what();
  }
  world().barrier();
}

TEST(Requests, AreRememberedUntilTheyAreForgotten) {
  train::request(train::kCheckpointAsked);
  train::request(train::kStopAsked);
  EXPECT_EQ(train::requested(), train::kCheckpointAsked | train::kStopAsked);
  train::forget_requests(train::kCheckpointRequests);
  EXPECT_EQ(train::requested(), train::kStopAsked);
  train::forget_requests(train::kStopRequests);
  EXPECT_EQ(train::requested(), 0U);
}

}  // namespace
}  // namespace lockstep::test
