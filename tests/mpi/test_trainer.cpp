// With shards, a run gives the same bits at every number of ranks as on one: losses, weights, optimizer state, running
// statistics, dropout, uneven tails, steps with fewer samples than ranks, and communicators of the caller's.
#include <chrono>
#include <thread>

#include "lockstep/comm/mpi_interop.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

Task with_rule(std::shared_ptr<optim::UpdateRule> rule) {
  Task task;
  task.options.rule = std::move(rule);
  return task;
}

void expect_bits_at_any_size(const Task& task, const std::string& what) {
  const auto alone = run_task(Communicator::self(), task);
  const auto together = run_task(world(), task);
  expect_same_bits(*together, *alone, formatted("{} on {} ranks", what, world().size()));
  EXPECT_TRUE(std::ranges::all_of(alone->losses, [](double loss) { return std::isfinite(loss) && loss > 0; })) << what;
}

TEST(Shards, AnMlpHasTheSameBits) {
  // 301 samples by 128: the third step has 45, shards of 12, 11, 11, 11.
  expect_bits_at_any_size(with_rule(optim::sgd({.momentum = 0.9, .nesterov = true})), "sgd");
  Task adam = with_rule(optim::adam({}));
  adam.lr = 0.01;
  expect_bits_at_any_size(adam, "adam");
  for (const std::int64_t shards : {5, 7, 16}) {
    Task task = with_rule(optim::sgd({.momentum = 0.9}));
    task.options.shards = shards;
    task.options.bucket_bytes = 1000;  // several buckets
    expect_bits_at_any_size(task, formatted("{} shards", shards));
  }
}

// Ranks of a node update parts of one copy of the weights, and here rank 0 does so before the others.
TEST(Predictions, AreMadeFromWeightsThatAllRanksHaveUpdated) {
  const Task task = with_rule(optim::sgd({.momentum = 0.9}));
  Rig alone(Communicator::self(), task), rig(world(), task);
  alone.trainer->step(alone.loader->next(), 0.5);
  const data::Batch batch = rig.loader->next();
  (void)rig.trainer->predict(batch);  // compiles, so that the prediction after the step begins at once
  rig.trainer->before_update([] {
    if (!world().is_root()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return 1.0;
  });
  rig.trainer->step(batch, 0.5);
  const Tensor got = rig.trainer->predict(batch), expected = alone.trainer->predict(batch);
  ASSERT_EQ(got.shape(), expected.shape());
  for (std::size_t i = 0; i < got.data<float>().size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], expected.data<float>()[i], 1e-4) << i;
  world().barrier();
}

TEST(Shards, TrainingReallyHappens) {
  Task task = with_rule(optim::sgd({.momentum = 0.9}));
  task.steps = 30;
  const auto rig = run_task(world(), task);
  EXPECT_LT(rig->losses.back(), 0.3 * rig->losses.front());
  rig->loader->seek({});
  std::int64_t reached = 0;  // by all ranks, as each is told
  const train::Totals totals = rig->trainer->evaluate(*rig->loader, [&reached](std::int64_t samples) {
    EXPECT_GT(samples, reached);
    reached = samples;
  });
  EXPECT_EQ(totals.samples, task.samples);
  EXPECT_EQ(reached, task.samples);
  EXPECT_GT(totals.metric("accuracy"), 0.9);
}

TEST(Shards, AConvNetWithBatchNormHasTheSameBits) {
  Task task = with_rule(optim::sgd({.momentum = 0.9}));
  task.samples = 90;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options.global_batch = 32;
  task.steps = 7;  // two epochs and their tails of 26, shards of 7, 7, 6, 6
  expect_bits_at_any_size(task, "resnet");
  task.options.shards = 9;
  task.options.accumulate = 2;
  expect_bits_at_any_size(task, "resnet, 9 shards, 2 micro-batches");
}

TEST(Shards, RunningStatisticsMoveOncePerStep) {
  Task task;
  task.channels = 3;
  task.network = make_resnet;
  task.samples = 32;
  task.options.global_batch = 32;
  task.steps = 3;
  const auto rig = run_task(world(), task);
  bool found = false;
  for (const auto& [name, tensor] : rig->trainer->state()) {
    if (!name.ends_with("num_batches_tracked")) continue;
    found = true;
    EXPECT_EQ(tensor.data<std::int64_t>()[0], 3) << name;
  }
  EXPECT_TRUE(found);
}

TEST(Shards, EvaluationHasTheSameBits) {
  const Task task;
  const auto evaluated = [&](const Communicator& comm) {
    const auto rig = run_task(comm, task);
    rig->loader->seek({});
    return rig->trainer->evaluate(*rig->loader);
  };
  const train::Totals alone = evaluated(Communicator::self()), together = evaluated(world());
  EXPECT_EQ(together.loss, alone.loss);
  ASSERT_TRUE(alone.metric("accuracy"));
  EXPECT_EQ(together.metric("accuracy"), alone.metric("accuracy"));
  EXPECT_EQ(together.samples, task.samples);
}

TEST(Shards, DropoutIsTheSame) {
  Task task = with_rule(optim::sgd({.momentum = 0.9}));
  task.network = [] { return std::make_unique<DropoutNet>(0.4); };
  expect_bits_at_any_size(task, "dropout");
  Task none = task;
  none.network = [] { return std::make_unique<DropoutNet>(0.0); };
  EXPECT_NE(run_task(world(), none)->losses, run_task(world(), task)->losses);
}

TEST(Shards, FewerSamplesThanShardsAreLegal) {
  Task task = with_rule(optim::sgd({.momentum = 0.9}));
  task.samples = 13;
  task.options.global_batch = 6;  // steps of 6, 6 and 1: in the last, three of four shards are empty
  task.steps = 9;
  expect_bits_at_any_size(task, "tail of one sample");
  task.options.shards = 9;  // more shards than samples in any step
  expect_bits_at_any_size(task, "empty shards");
}

TEST(Shards, MicroBatchesHaveTheSameBits) {
  Task task = with_rule(optim::adam({.decoupled_decay = true}));
  task.options.update.weight_decay = 0.01;
  task.options.accumulate = 3;
  expect_bits_at_any_size(task, "3 micro-batches");
  task.samples = 130;  // the second step has 2 samples: no shard fills its micro-batches
  expect_bits_at_any_size(task, "empty micro-batches");
}

TEST(Samples, AreTheSameInEachStepAtEverySize) {
  for (const std::int64_t shards : {std::int64_t{0}, std::int64_t{4}}) {
    Task task;
    task.options.shards = shards;
    const auto alone = run_task(Communicator::self(), task), together = run_task(world(), task);
    for (std::size_t step = 0; step < together->samples.size(); ++step) {
      std::string mine;
      for (const std::int64_t id : together->samples[step]) mine += formatted("{} ", id);
      std::string all, expected;
      for (const std::string& part : world().allgather_strings(mine)) all += part;
      for (const std::int64_t id : alone->samples[step]) expected += formatted("{} ", id);
      EXPECT_EQ(all, expected) << "step " << step;
    }
    // 43, 43, 42 of 128.
    if (world().size() == 3 && shards == 0) {
      EXPECT_EQ(together->samples[0].size(), world().rank() < 2 ? 43U : 42U);
    }
  }
}

TEST(Callers, AnMpiOfTheirOwnSplitInTwo) {
  MPI_Comm half = MPI_COMM_NULL;
  const int colour = world().rank() % 2;
  // In reverse order of rank, so that ranks differ from those of the world.
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, colour, -world().rank(), &half), MPI_SUCCESS);
  Task task;
  task.options.seed = 20 + static_cast<std::uint64_t>(colour);
  {
    const Communicator comm = comm::duplicate_of(half);
    const auto alone = run_task(Communicator::self(), task);
    const auto together = run_task(comm, task);
    expect_same_bits(*together, *alone, formatted("half {}", colour));
    int size = 0;  // the caller's communicator still talks, and reports as it did
    const int one = 1;
    ASSERT_EQ(MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, half), MPI_SUCCESS);
    EXPECT_EQ(size, comm.size());
  }
  MPI_Comm_free(&half);
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
