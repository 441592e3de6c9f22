// Batch norm by the statistics of all ranks: P ranks train as one rank does on the whole batch, also with uneven parts,
// ranks without samples, and micro-batches; sums over ranks follow the reduction tree.
#include <bit>

#include "lockstep/parallel/tree_collective.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

Task whole_batch_task(std::int64_t global_batch, DType precision = DType::F64) {
  Task task;
  task.samples = 2 * global_batch;
  task.channels = 3;
  task.side = 8;
  task.network = make_resnet;
  task.options = {.global_batch = global_batch,
                  .precision = precision,
                  .seed = 5,
                  .rule = optim::sgd({.momentum = 0.9}),
                  .compile = {.synchronisation = {.all_norms = true}}};
  return task;
}

void expect_as_on_one_rank(const Task& task, double tolerance, const std::string& what) {
  const auto alone = run_task(Communicator::self(), task), together = run_task(world(), task);
  EXPECT_LT(distance(alone->losses, together->losses), tolerance) << what;
  EXPECT_LT(distance(*alone->trainer, *together->trainer), tolerance) << what;  // running statistics too
}

TEST(SyncBatchNorm, TrainsAsOneRankOnTheWholeBatch) {
  Task task = whole_batch_task(24);
  task.steps = 20;
  expect_as_on_one_rank(task, 1e-9, "24 samples");
}

Task resnet20_task(DType precision) {
  Task task = whole_batch_task(32, precision);
  task.network = [] {
    return std::make_unique<ResNet>(ResNetConfig{
        .blocks = {3, 3, 3}, .width = 16, .stem = ResNetConfig::Stem::Cifar, .in_channels = 3, .classes = 5});
  };
  task.side = 16;
  task.steps = 3;
  return task;
}

TEST(SyncBatchNorm, ResNet20TrainsAsOneRank) {
  const auto exact = run_task(Communicator::self(), resnet20_task(DType::F64));
  const auto together = run_task(world(), resnet20_task(DType::F64));
  EXPECT_LT(distance(*exact->trainer, *together->trainer), 1e-9);
  const auto alone = run_task(Communicator::self(), resnet20_task(DType::F32));
  const auto rounded = run_task(world(), resnet20_task(DType::F32));
  fmt::print("f64 {} loss32 {} {} state32 {} {}\n", distance(*exact->trainer, *together->trainer),
             distance(exact->losses, alone->losses), distance(exact->losses, rounded->losses),
             distance(*exact->trainer, *alone->trainer), distance(*exact->trainer, *rounded->trainer));
}

TEST(SyncBatchNorm, PartsMayBeUnevenOrEmpty) {
  Task task = whole_batch_task(10);
  task.steps = 6;
  expect_as_on_one_rank(task, 1e-9, "10 samples");
  task.samples = 13;  // every second step has 3 samples: none for the fourth rank
  expect_as_on_one_rank(task, 1e-9, "10 and 3 samples");
}

TEST(SyncBatchNorm, EachBlockMayBeRecomputed) {
  Task task = whole_batch_task(12);
  task.steps = 4;
  for (const Recompute recompute : {Recompute::None, Recompute::Blocks}) {
    task.options.compile.recompute = recompute;
    expect_as_on_one_rank(task, 1e-9, "recomputation");
  }
}

}  // namespace
}  // namespace lockstep::test
