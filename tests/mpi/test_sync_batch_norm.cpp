// Batch norm by the statistics of all ranks: P ranks train as one rank does on the whole batch, also with uneven parts,
// ranks without samples, and micro-batches; sums over ranks follow the reduction tree.
#include <array>
#include <numeric>

#include "lockstep/ops/pool.h"
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
    return std::make_unique<models::ResNet>(models::ResNetConfig{
        .blocks = {3, 3, 3}, .width = 16, .stem = models::ResNetConfig::Stem::Cifar, .in_channels = 3, .classes = 5});
  };
  task.side = 16;
  task.steps = 3;
  return task;
}

TEST(SyncBatchNorm, ResNet20TrainsAsOneRank) {
  const auto exact = run_task(Communicator::self(), resnet20_task(DType::F64));
  const auto together = run_task(world(), resnet20_task(DType::F64));
  EXPECT_LT(distance(*exact->trainer, *together->trainer), 1e-9);
  // Where rounding flips a ReLU, runs part: with direct sums after more steps than with Winograd's. So do weights,
  // which are not compared.
  Task direct = resnet20_task(DType::F32);
  direct.options.compile.kernels.conv_math = kernels::KernelOptions::ConvMath::Exact;
  const auto alone = run_task(Communicator::self(), direct), rounded = run_task(world(), direct);
  EXPECT_LT(distance(alone->losses, rounded->losses), 1e-5);
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
  for (const plan::Recompute recompute : {plan::Recompute::None, plan::Recompute::Blocks}) {
    task.options.compile.recompute = recompute;
    expect_as_on_one_rank(task, 1e-9, "recomputation");
  }
}

// Reorders the whole batch so that its micro-batch m is what all ranks together have in theirs.
void sort_by_micro_batch(data::Batch& batch, int ranks, std::int64_t accumulate) {
  for (Tensor& field : batch.fields) {
    const std::size_t bytes = field.bytes() / static_cast<std::size_t>(batch.samples());
    const std::vector<std::byte> original(field.raw(), field.raw() + field.bytes());
    std::byte* to = field.raw();
    for (std::int64_t micro = 0; micro < accumulate; ++micro) {
      for (int r = 0; r < ranks; ++r) {
        const Range shard = part_of(batch.samples(), ranks, r), part = part_of(shard.size(), accumulate, micro);
        to = std::copy_n(original.begin() + (shard.begin + part.begin) * static_cast<std::int64_t>(bytes),
                         part.size() * static_cast<std::int64_t>(bytes), to);
      }
    }
  }
}

TEST(SyncBatchNorm, EachMicroBatchIsNormalisedByItself) {
  Task task = whole_batch_task(24);
  task.options.accumulate = 2;
  Rig together(world(), task), alone(Communicator::self(), task);
  for (int step = 0; step < 4; ++step) {
    data::Batch whole = alone.loader->next();
    sort_by_micro_batch(whole, world().size(), task.options.accumulate);
    EXPECT_NEAR(together.trainer->step(together.loader->next(), task.lr).loss, alone.trainer->step(whole, task.lr).loss,
                1e-9);
  }
  EXPECT_LT(distance(*together.trainer, *alone.trainer), 1e-9);
}

TEST(SyncBatchNorm, RanksRunTheSameNumberOfMicroBatches) {
  Task task = whole_batch_task(10);
  task.options.accumulate = 4;  // more than the samples of any rank of three or four
  task.steps = 4;
  const auto rig = run_task(world(), task);
  EXPECT_TRUE(std::isfinite(rig->losses.back()));
  const std::vector<std::uint64_t> hashes = world().allgather(rig->trainer->weights_hash());
  EXPECT_EQ(std::ranges::count(hashes, hashes[0]), world().size());
}

// The first rank's has no sample at all.
TEST(SyncBatchNorm, AnEndedStreamTakesPart) {
  Task task = whole_batch_task(3 * world().size());
  Rig rig(world(), task);
  data::Batch batch = rig.loader->next();
  const bool has_ended = world().rank() == 0;
  const train::Totals totals = rig.trainer->step(has_ended ? std::nullopt : std::optional(std::move(batch)), task.lr);
  EXPECT_EQ(totals.samples, 3 * (world().size() - 1));
  EXPECT_EQ(rig.trainer->updates(), world().size() > 1 ? 1 : 0);
  EXPECT_EQ(rig.trainer->step(std::optional<data::Batch>(), task.lr).samples, 0);
  const std::vector<std::uint64_t> hashes = world().allgather(rig.trainer->weights_hash());
  EXPECT_EQ(std::ranges::count(hashes, hashes[0]), world().size());
}

TEST(SyncBatchNorm, OnOneRankIsBatchNormBitForBit) {
  Task task = whole_batch_task(12, DType::F32);
  const auto synchronised = run_task(Communicator::self(), task);
  task.options.compile.synchronisation.all_norms = false;
  expect_same_bits(*synchronised, *run_task(Communicator::self(), task), "one rank");
}

class NormNet : public models::Classifier {
 public:
  explicit NormNet(bool sync) : sync_(sync) {}
  Value operator()(Value x) const override { return out_(flatten(global_average_pool2d(relu(norm_(conv_(x)))))); }

 private:
  bool sync_;
  nn::Child<nn::Conv2d> conv_{this, "conv", {.in = 3, .out = 6, .kernel = 3, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> norm_{this, "norm", {.channels = 6, .sync = sync_}};
  nn::Child<nn::Linear> out_{this, "out", {.in = 6, .out = 5}};
};

TEST(SyncBatchNorm, IsAnOptionOfAModuleToo) {
  Task task = whole_batch_task(12);
  task.options.compile.synchronisation.all_norms = false;
  task.network = [] { return std::make_unique<NormNet>(true); };
  expect_as_on_one_rank(task, 1e-9, "sync");
  task.network = [] { return std::make_unique<NormNet>(false); };
  const auto alone = run_task(Communicator::self(), task), together = run_task(world(), task);
  EXPECT_EQ(distance(alone->losses, together->losses) > 1e-6, world().size() > 1);
}

TEST(SyncBatchNorm, RunsWithOneShardPerRankAlone) {
  const int size = world().size();
  Task task = whole_batch_task(12);
  task.options.shards = size;
  const auto sharded = run_task(world(), task);
  task.options.shards = 0;
  expect_same_bits(*sharded, *run_task(world(), task), "as many shards as ranks");
  task.options.shards = size + 1;
  if (size == 1) return;
  EXPECT_NE(error_of([&] { Rig(world(), task); }).find("expected as many shards as ranks"), std::string::npos);
}

TEST(SyncBatchNorm, HasTheSameBitsOnEveryPathOfTheGradients) {
  using Path = train::ParallelOptions::Path;
  Task task = whole_batch_task(13, DType::F32);
  task.options.bucket_bytes = 1000;  // many, so that forward waits for buckets as well as for sums
  const auto usual = run_task(world(), task);
  using Overlap = train::ParallelOptions::Overlap;
  const std::vector<train::ParallelOptions> all{{.path = Path::Messages},
                                                {.share_weights = false},
                                                {.overlap = Overlap::Thread},
                                                {.path = Path::Messages, .overlap = Overlap::Thread}};
  for (const train::ParallelOptions& options : all) {
    task.options.parallel = options;
    expect_same_bits(
        *run_task(world(), task), *usual,
        formatted("path {}, driver {}", static_cast<int>(options.path), static_cast<int>(options.overlap)));
  }
}

// A rank that waits within a pass throws a PeerError, by which a program tells it from the rank that failed.
TEST(SyncBatchNorm, OnlookersKnowThatAnotherRankFailed) {
  const Communicator comm = Communicator::world();
  Rig rig(comm, whole_batch_task(12));
  data::Batch batch = rig.loader->next();
  const bool fails = comm.rank() == comm.size() - 1;
  if (fails) batch.names[0] = "picture";
  bool is_of_peer = false;
  const std::string error = error_of([&] {
    try {
      rig.trainer->step(batch, 0.1);
    } catch (const PeerError&) {
      is_of_peer = true;
      throw;
    }
  });
  EXPECT_EQ(is_of_peer, !fails) << error;
  if (fails) {
    EXPECT_NE(error.find("no field 'image'"), std::string::npos) << error;
  }
}

// Two ranks with one sample each are enough; one sample of all ranks together is not.
TEST(SyncBatchNorm, OneValueOfAllRanksIsRefused) {
  const int size = world().size();
  Task task = whole_batch_task(2);
  task.samples = 3;
  task.side = 4;  // the last maps are 1x1
  const Communicator comm = Communicator::world();
  Rig rig(comm, task);
  rig.train(1);
  const std::string known = error_of([&] { rig.train(1); });  // the epoch's third sample
  EXPECT_NE(known.find("a batch of 1 sample in "), std::string::npos) << known;
  const int failures = comm.allreduce(std::int32_t{known != "no error"}, comm::ReduceOp::Sum);
  EXPECT_EQ(failures, size);
  // Of streams nobody knows how many samples there will be.
  rig.loader->seek({});
  data::Batch batch = rig.loader->next();
  data::Batch one{.names = batch.names, .fields = {}, .step = {}};
  for (const Tensor& field : batch.fields) {
    Tensor& part = one.fields.emplace_back(field.shape().tail().batched(1), field.dtype());
    if (field.bytes() > 0) std::copy_n(field.raw(), part.bytes(), part.raw());
  }
  one.step = {.global_size = 1, .local = {0, 1}, .samples = {0}};
  const bool has_sample = comm.rank() == 0;
  const std::string error =
      error_of([&] { rig.trainer->step(has_sample ? std::optional(std::move(one)) : std::nullopt, 0.1); });
  EXPECT_NE(error, "no error");  // its own, or that of the first rank to find it
  const std::vector<std::string> errors = world().allgather_strings(error);
  EXPECT_TRUE(std::ranges::any_of(errors, [](const std::string& e) {
    return e.find("one value per channel") != std::string::npos;
  })) << error;
}

TEST(SyncBatchNorm, NobodyWaitsForARankThatFailed) {
  const Communicator comm = Communicator::world();
  Rig rig(comm, whole_batch_task(12));
  data::Batch batch = rig.loader->next();
  const bool fails = comm.rank() == comm.size() - 1;
  if (fails) batch.names[0] = "picture";
  const std::string error = error_of([&] { rig.trainer->step(batch, 0.1); });
  EXPECT_NE(error, "no error");
  if (fails) {
    EXPECT_NE(error.find("no field 'image'"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace lockstep::test
