// Batches that cannot be trained: a sample with a wrong label is named, and what leaves a batch norm one value per
// channel is refused, by all ranks alike where all know it.
#include <algorithm>

#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

TEST(Batch, AWrongLabelIsNamedWithItsSample) {
  const Communicator comm = Communicator::world();
  Task task;
  task.options = {.global_batch = 40, .shards = 4, .accumulate = 2, .seed = 5};
  Rig rig(comm, task);
  data::Batch batch = rig.loader->next();
  const bool fails = comm.rank() == comm.size() - 1;
  const auto row = static_cast<std::size_t>(batch.samples() - 1);
  if (fails) batch.at("label").data<std::int32_t>()[row] = 9;
  const std::string error = error_of([&] { rig.trainer->step(batch, 0.1); });
  if (fails) {
    EXPECT_EQ(error,
              formatted("[cross_entropy] (model): 'label' of sample {} (row {} of this rank's {}) is 9, expected "
                        "a class from 0 to 4",
                        batch.step.samples[row], row, batch.samples()));
  } else {
    EXPECT_NE(error, "no error");
  }
}

TEST(Batch, AWrongLabelIsNamedInAnEvaluationToo) {
  Task task;
  task.options = {.global_batch = 8, .seed = 5};
  Rig rig(Communicator::self(), task);
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"image", Tensor({20, 1, 6, 6}, DType::F32)});
  tensors.push_back({"label", Tensor({20}, DType::I32)});
  tensors.back().tensor.data<std::int32_t>()[13] = -1;
  const data::TensorDataset dataset(std::move(tensors));  // which does not know how many classes there are
  data::Loader loader(dataset, rig.trainer->sampler(dataset, {.shuffle = false}), {}, {.threads = 0});
  EXPECT_EQ(
      error_of([&] { rig.trainer->evaluate(loader); }),
      "[cross_entropy] (model): 'label' of sample 13 (row 5 of this rank's 8) is -1, expected a class from 0 to 4");
}

// Its last maps are 1x1, so that a part of one sample has one value per channel.
Task narrow_task(std::int64_t global_batch, std::int64_t samples) {
  Task task;
  task.samples = samples;
  task.channels = 3;
  task.side = 4;
  task.network = make_resnet;
  task.options = {.global_batch = global_batch, .seed = 5};
  return task;
}

TEST(OneValuePerChannel, IsRefusedByAllRanksAtTheStart) {
  const std::int64_t size = world().size();
  // The last rank has one sample, the others have two.
  const std::string uneven = error_of([&] { Rig(world(), narrow_task(2 * size - 1, 64)); });
  expect_contains(uneven, "[batch_norm2d] layer3.0.bn1: ");
  expect_contains(uneven, "one value per channel");
  expect_shared(uneven);
  Task micro = narrow_task(2 * size, 64);
  micro.options.accumulate = 2;
  const std::string halves = error_of([&] { Rig(world(), micro); });
  expect_contains(halves, "[batch_norm2d] layer3.0.bn1: ");
  expect_shared(halves);
  Task shards = narrow_task(2 * size + 1, 64);
  shards.options.shards = 2 * size;  // the first has two samples
  const std::string sharded = error_of([&] { Rig(world(), shards); });
  expect_contains(sharded,
                  formatted("a batch of {} samples in {} parts (ranks or shards) leaves one sample to some part",
                            2 * size + 1, 2 * size));
  expect_shared(sharded);
}

TEST(OneValuePerChannel, IsRefusedByAllRanksInAShortBatch) {
  const std::int64_t size = world().size();
  Rig rig(world(), narrow_task(2 * size, 2 * size + 1));
  rig.train(1);
  const std::string error = error_of([&] { rig.train(1); });
  expect_contains(error, "[batch_norm2d] layer3.0.bn1: a batch of 1 sample in ");
  expect_contains(error, "--remainder drop");
  expect_shared(error);
  EXPECT_EQ(error_of([&] { rig.trainer->check_batch(1); }), error);
  rig.trainer->check_batch(0);
  rig.trainer->check_batch(2 * size);
  rig.train(1);  // nothing was begun, so training may go on with the next epoch
  EXPECT_EQ(rig.trainer->updates(), 2);
}

TEST(OneValuePerChannel, IsFineWhereNoStatisticsAreTaken) {
  Task task = narrow_task(1, 4);  // all but the first rank have no sample
  task.network = [] {
    auto network = make_resnet();
    network->freeze_statistics(true);
    return network;
  };
  EXPECT_TRUE(std::isfinite(run_task(world(), task)->losses.back()));
}

}  // namespace
}  // namespace lockstep::test
