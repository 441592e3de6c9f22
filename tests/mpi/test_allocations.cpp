// Whole training steps allocate nothing from the third on; what oneDNN and MPI allocate for themselves is as much in
// every step.
#include "lockstep/parallel/exchange/allreduce.h"
#include "tests/allocation_counter.h"
#include "tests/mpi/click_run.h"

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

void expect_none(const std::vector<counting::Counts>& steps) {
  for (const counting::Counts& made : steps) {
    EXPECT_EQ(made.news, 0);
    EXPECT_EQ(made.mallocs, 0);
    EXPECT_EQ(made.inside, steps[0].inside) << "by oneDNN's primitives";
    EXPECT_EQ(made.executions, steps[0].executions);
    EXPECT_EQ(made.creations, 0) << "of primitives";
  }
}

TEST(Allocations, AStepMakesNone) {
  const train::TrainerOptions options{.global_batch = 16, .rule = optim::sgd({.momentum = 0.9})};
  const auto resnet = counts_of_steps({.channels = 3, .side = 8, .options = options, .network = make_resnet});
  const auto mlp = counts_of_steps({.options = options});
  expect_none(resnet);
  expect_none(mlp);
}

TEST(Allocations, AStepWithSynchronisedBatchNormMakesNone) {
  const train::TrainerOptions options{.global_batch = 16, .compile = {.synchronisation = {.all_norms = true}}};
  expect_none(counts_of_steps({.channels = 3, .side = 8, .options = options, .network = make_resnet}));
}

// The same batch each time, as a buffer grows with a batch of more ids. Buffers exchange their places in the first
// steps until each of them has the length that the batch needs; hot rows are chosen after eight steps.
TEST(Allocations, AStepWithTablesMakesNone) {
  constexpr int kWarm = 12, kCounted = 3;
  for (const bool shard : {false, true}) {
    ClickTask task{.shard = shard, .rule = RowRule::Adam, .clip = 0.5, .accumulate = 2};
    if (shard) task.tables = {.hot_rows = 25, .exchange = parallel::TableExchange::Blocks};
    ClickRun run(world(), task);
    const data::Batch batch = run.loader->next();
    std::vector<counting::Counts> steps;
    for (int step = 1; step <= kWarm + kCounted; ++step) {
      const counting::Counts before = counting::counts();
      if (shard) run.trainer->announce(batch);
      run.trainer->step(batch, run.rate);
      if (step > kWarm) steps.push_back(counting::counts() - before);
    }
    SCOPED_TRACE(task.name());
    expect_none(steps);
  }
}

TEST(Allocations, AShortReductionOfACallersBufferMakesNone) {
  if (world().size() == 1) GTEST_SKIP() << "one rank has no queue of reductions";
  parallel::Allreduce engine(world(), {.path = parallel::AllreducePath::Shared});
  std::vector<float> in(100, 1), first_sum(100), second_sum(100);
  const auto reduce = [&] {
    parallel::Handle first = engine.iallreduce(in, first_sum, comm::ReduceOp::Sum),
                     second = engine.iallreduce(in, second_sum, comm::ReduceOp::Sum);
    second.wait();
    first.wait();
    engine.allreduce(in, first_sum, comm::ReduceOp::Sum);
  };
  for (int i = 0; i < 4; ++i) reduce();
  const counting::Counts before = counting::counts();
  for (int i = 0; i < 40; ++i) reduce();
  const counting::Counts made = counting::counts() - before;
  EXPECT_EQ(made.news, 0) << "in 120 calls";
  EXPECT_EQ(made.mallocs, 0);
}

}  // namespace
}  // namespace lockstep::test
