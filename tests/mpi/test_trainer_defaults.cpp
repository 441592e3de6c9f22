// The behaviour of a Trainer that was given no guards, as the programs have it by default.
#include <cmath>
#include <limits>

#include "lockstep/checkpoint/state.h"
#include "lockstep/data/stream.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/guard/untrusted_error.h"
#include "lockstep/train/options/options.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

Task bare(bool share = true) {
  Task task;
  task.options = {.global_batch = 128, .rule = optim::sgd({.momentum = 0.9})};
  task.options.parallel.share_weights = share;
  return task;
}

// The message of the UntrustedError that `work` throws on all ranks; another error fails the test.
template <class Work>
std::string distrust_of(Work&& work) {
  try {
    work();
  } catch (const train::UntrustedError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Defaults, AreThoseOfThePrograms) {
  const train::GuardOptions programs = train::Options{}.trainer.guards, mine = train::TrainerOptions{}.guards;
  EXPECT_EQ(mine.verify_every, programs.verify_every);
  EXPECT_EQ(mine.compare_every, programs.compare_every);
  EXPECT_EQ(mine.on_mismatch, programs.on_mismatch);
  EXPECT_EQ(mine.action, programs.action);
  EXPECT_EQ(mine.gradient.norm, programs.gradient.norm);
  EXPECT_EQ(mine.gradient.spike, programs.gradient.spike);
  EXPECT_EQ(mine.gradient.warn, programs.gradient.warn);
}

TEST(Defaults, ALossThatIsNotANumberStopsAndLeavesTheWeights) {
  Rig rig(world(), bare());
  rig.train(2);
  const std::uint64_t weights = rig.trainer->weights_hash();
  data::Batch batch = rig.loader->next();
  if (is_last()) batch.at("image").data<float>()[3] = kNan;
  const std::string error = distrust_of([&] { rig.trainer->step(batch, 0.1); });
  expect_contains(error, "[guard] update 3: the loss is nan");
  expect_contains(error, "'image' of sample ");
  EXPECT_EQ(rig.trainer->weights_hash(), weights);
  EXPECT_EQ(rig.trainer->updates(), 2);
}

TEST(Defaults, SoDoesOneOfAStream) {
  const auto network = make_mlp();
  const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
  train::Trainer trainer(world(), *network, models::classify(*network), fields, bare().options);
  std::int64_t pulled = 0;
  const data::StreamOptions options{.fields = fields,
                                    .pull =
                                        [&](data::StreamSample& sample) {
                                          std::fill_n(sample.field<float>(0), 36, 0.1F);
                                          *sample.field<std::int32_t>(1) = 2;
                                          if (++pulled == 11 && is_last()) *sample.field<float>(0) = kNan;
                                          return true;
                                        },
                                    .batch = 4};
  data::StreamLoader stream(options.for_rank(world().rank(), world().size()));
  trainer.step(stream.next(), 0.1);
  trainer.step(stream.next(), 0.1);
  const std::string error = distrust_of([&] { trainer.step(stream.next(), 0.1); });
  expect_contains(error, formatted("'image' of sample {} is not finite", 10 * world().size() + world().size() - 1));
}

TEST(Defaults, DamagedMemoryWithoutACopyStopsAsThereIsNoWayBack) {
  Rig rig(world(), bare());
  rig.train(2);
  if (world().is_root()) {
    const plan::Bucket& bucket = rig.trainer->model().parameters().buckets().front();
    bucket.values[2] ^= std::byte{4};
  }
  world().barrier();
  const std::string error = distrust_of([&] { rig.train(1); });
  expect_contains(error, "[memory] after update 2: rank 0 on ");
  expect_contains(error, "has changed in memory");
}

TEST(Defaults, DamagedMemoryWithACopyIsRepaired) {
  if (world().size() == 1) GTEST_SKIP() << "one copy";
  Task task = bare(false);
  task.steps = 4;
  const auto undisturbed = run_task(world(), task);
  Rig rig(world(), task);
  rig.train(2);
  if (is_last()) rig.trainer->model().parameters().buckets().front().values[2] ^= std::byte{4};
  world().barrier();
  rig.train(2);
  expect_same_bits(rig, *undisturbed, "repaired");
}

TEST(Defaults, WhatIsWrittenByNameIsNoDamage) {
  for (const bool share : {true, false}) {
    Rig rig(world(), bare(share));
    rig.train(2);
    plan::ParameterStore& store = rig.trainer->model().parameters();
    store.write("2.bias", Tensor(Shape{17}, DType::F32));
    store.refresh();
    world().barrier();
    rig.train(2);
    rig.trainer->model().parameters().write_state("2.bias", 0, Tensor(Shape{17}, DType::F32));
    world().barrier();
    rig.train(2);
    EXPECT_EQ(rig.trainer->updates(), 6);
  }
}

TEST(Defaults, CanBeTurnedOff) {
  Task task = bare();
  task.options.guards = train::GuardOptions::none();
  Rig rig(world(), task);
  data::Batch batch = rig.loader->next();
  if (is_last()) batch.at("image").data<float>()[3] = kNan;
  EXPECT_TRUE(std::isnan(rig.trainer->step(batch, 0.1).loss));
  EXPECT_EQ(rig.trainer->updates(), 1);
}

}  // namespace
}  // namespace lockstep::test
