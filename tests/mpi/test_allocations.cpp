// Whole training steps: a plan allocates nothing (tests/plan), what surrounds it a few objects, for its result, for
// looking up the plan and for messages. They are as many in every step.
#include "tests/allocation_counter.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

// Of this rank's third step and of those after it.
std::vector<counting::Counts> counts_of_steps(const Task& task) {
  Rig rig(world(), task);
  const data::Batch batch = rig.loader->next();
  std::vector<counting::Counts> result;
  for (int step = 1; step <= 6; ++step) {
    const counting::Counts before = counting::counts();
    const double loss = rig.trainer->step(batch, rig.lr).loss;
    if (step >= 3) result.push_back(counting::counts() - before);
    EXPECT_TRUE(std::isfinite(loss));
  }
  return result;
}

void expect_few_and_the_same(const std::vector<counting::Counts>& steps) {
  std::int64_t memory = 0;
  for (const counting::Counts& made : steps) {
    EXPECT_EQ(made.news, steps[0].news);
    EXPECT_LE(made.news, 64);
    memory += made.mallocs;
    EXPECT_EQ(made.inside, steps[0].inside) << "by oneDNN's primitives";
    EXPECT_EQ(made.executions, steps[0].executions);
    EXPECT_EQ(made.creations, 0) << "of primitives";
  }
  // With several ranks, a lane for receiving is made when two buckets first meet, in whichever step that is.
  EXPECT_LE(memory, world().size() == 1 ? 0 : 2);
}

TEST(Allocations, OfAStepAreTheSameFewInEveryStep) {
  const train::TrainerOptions options{.global_batch = 16, .rule = optim::sgd({.momentum = 0.9})};
  const auto resnet = counts_of_steps({.channels = 3, .side = 8, .options = options, .network = make_resnet});
  const auto mlp = counts_of_steps({.options = options});
  expect_few_and_the_same(resnet);
  expect_few_and_the_same(mlp);
  if (world().size() == 1) {
    EXPECT_EQ(resnet[0].news, mlp[0].news) << "they do not depend on the number of layers";
  }
}

}  // namespace
}  // namespace lockstep::test
