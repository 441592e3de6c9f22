// The mistakes of callers with a Trainer: each ends in an Error on all ranks, that says what was wrong, and in no
// wait, no crash and no silence.
#include <limits>
#include <stdexcept>

#include "lockstep/data/stream.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

// Of this test alone: a failure poisons a communicator and its relatives.
comm::Communicator fresh() { return comm::Communicator::world(); }

Task shared() {
  Task task;
  task.options = {.global_batch = 128, .rule = optim::sgd({.momentum = 0.9})};
  return task;
}

// Of whatever `work` throws.
template <class Work>
std::string what_of(Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(Batch, OfFewerRowsThanIdsIsRefused) {
  Rig rig(fresh(), shared());
  data::Batch batch = rig.loader->next();
  batch.at("image") = Tensor(Shape{batch.samples() - 1, 1, 6, 6}, DType::F32);
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }), "field 'image' of the batch is (");
  expect_contains(error_of([&] { rig.train(1); }), "cannot be used after an earlier failure: [trainer] field 'image'");
}

// The other ranks are in the step already, and wait for it in shared memory.
TEST(Batch, ThatOneRankAloneIsRefusedLeavesNoOtherWaiting) {
  const auto expect_all_end = [](const std::string& own, auto change) {
    Rig rig(fresh(), shared());
    const std::string error = error_of([&] {
      rig.train(1);  // the others may hear of the failure while they end this step
      data::Batch batch = rig.loader->next();
      double rate = 0.1;
      if (is_last()) change(batch, rate);
      rig.trainer->step(batch, rate);
    });
    expect_contains(error, is_last() ? own : "of this node has failed");
  };
  expect_all_end("expected this rank's part, [", [](data::Batch& b, double&) { b.step.local.begin += 1; });
  expect_all_end("the batch has 2 fields and 3 names", [](data::Batch& b, double&) { b.names.push_back("weight"); });
  expect_all_end("the learning rate of update 2 is nan", [](data::Batch&, double& rate) { rate = kNan; });
}

TEST(Batch, OfAStreamThatOneRankAloneIsRefusedLeavesNoOtherWaiting) {
  Rig rig(fresh(), shared());
  std::optional<data::Batch> batch = rig.loader->next();
  if (is_last()) batch->step.samples.clear();
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }),
                  is_last() ? "expected one row for each of the 0 ids" : "of this node has failed");
}

TEST(Batch, WithoutIdsIsNotTakenForAnEmptyOne) {
  Rig rig(fresh(), shared());
  std::optional<data::Batch> batch = rig.loader->next();
  batch->step.samples.clear();
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }), "expected one row for each of the 0 ids");
}

TEST(Batch, OfOtherFieldsIsRefused) {
  Rig rig(fresh(), shared());
  data::Batch batch = rig.loader->next();
  batch.names[0] = "picture";
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }), "no field 'image', there are: picture, label");
}

TEST(Batch, OfNamesWithoutFieldsIsRefused) {
  Rig rig(fresh(), shared());
  data::Batch batch = rig.loader->next();
  batch.names.push_back("weight");
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }), "the batch has 2 fields and 3 names");
}

TEST(Batch, ToEvaluateOfAnotherSamplerIsRefused) {
  if (world().size() == 1) GTEST_SKIP() << "one rank has all samples";
  Rig rig(fresh(), shared());
  data::Loader other(*rig.dataset,
                     data::DistributedSampler({.size = rig.dataset->size(),
                                               .global_batch = 128,
                                               .shards = 64,
                                               .my_shards = {world().rank(), world().rank() + 1}}),
                     {}, {.threads = 0, .floats = DType::F32});
  expect_contains(what_of([&] { rig.trainer->evaluate(other); }), "make the loader with Trainer::sampler()");
}

TEST(Rate, ThatIsNoNumberIsRefused) {
  for (const double rate : {double{kNan}, std::numeric_limits<double>::infinity(), -0.1}) {
    Rig rig(fresh(), shared());
    const data::Batch batch = rig.loader->next();
    expect_contains(error_of([&] { rig.trainer->step(batch, rate); }), "the learning rate of update 1 is ");
  }
}

TEST(Rate, ThatDiffersBetweenRanksIsNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank";
  Rig rig(fresh(), shared());
  const data::Batch batch = rig.loader->next();
  expect_contains(error_of([&] { rig.trainer->step(batch, is_last() ? 0.2 : 0.1); }),
                  "the learning rate differs: rank ");
}

TEST(Batch, OfAnotherEpochIsNamedWithSampleAndEpoch) {
  if (world().size() == 1) GTEST_SKIP() << "one rank";
  Rig rig(fresh(), shared());
  data::Batch batch = rig.loader->next();
  if (is_last()) batch.step.epoch += 1;
  const std::string error = error_of([&] { rig.trainer->step(batch, 0.1); });
  expect_contains(error, "the position in the data set differs: rank ");
  expect_contains(error, "sample 0 of epoch 2");
}

// Of one rank another model: of a shape that is padded to the same blocks, much larger, frozen in part, and with
// another function between the same parameters.
TEST(Models, ThatDifferBetweenRanksAreNamedBeforeTheFirstStep) {
  if (world().size() == 1) GTEST_SKIP() << "one rank";
  const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
  const auto error = [&](std::int64_t hidden, bool frozen, bool bounded) {
    const models::Mlp network({36, hidden, 10});
    if (frozen) network.named_parameters()[0].parameter->trainable = false;
    const plan::ModelFunction model = [&](const plan::Inputs& in) {
      const Value logits = network(in["image"]);
      return plan::Traced{.loss = cross_entropy(bounded ? tanh(logits) : logits, in["label"])};
    };
    return error_of([&] { train::Trainer(fresh(), network, model, fields, shared().options); });
  };
  const bool last = is_last();
  expect_contains(error(last ? 16 : 8, false, false), "the model's parameters");
  expect_contains(error(last ? 20000 : 512, false, false), "0.weight (20000, 36)");
  expect_contains(error(8, last, false), "frozen");
  expect_contains(error(8, false, last), "the model's operations");
}

TEST(Options, ThatCannotBeMetAreRefusedAtOnce) {
  const auto error = [](auto change) {
    Task task = shared();
    change(task.options);
    // Not as Rig does it: its sampler has opinions of its own.
    const auto network = make_mlp();
    const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
    return error_of([&] { train::Trainer(fresh(), *network, models::classify(*network), fields, task.options); });
  };
  using Options = train::TrainerOptions;
  expect_contains(error([](Options& o) { o.global_batch = 0; }), "the global batch is 0 samples");
  for (const std::int64_t much : {std::int64_t{1} << 40, std::int64_t{1} << 62})
    expect_contains(error([&](Options& o) { o.global_batch = much; }), "use more shards or more micro-batches");
  expect_contains(error([](Options& o) { o.shards = std::int64_t{1} << 36; }), "68719476736 shards for ");
  expect_contains(error([](Options& o) { o.shards = -1; }), "-1 shards for ");
  expect_contains(error([](Options& o) { o.accumulate = std::int64_t{1} << 40; }), "1099511627776 micro-batches");
  expect_contains(error([](Options& o) { o.clip_norm = -1; }), "the largest norm of the gradient is -1");
  expect_contains(error([](Options& o) { o.precision = DType::I32; }), "the precision is i32");
  expect_contains(error([](Options& o) { o.parallel.local_steps = 0; }), "0 local steps");
  const auto local = [&](auto change) {
    return error([&](Options& o) {
      o.parallel.local_steps = 2;
      change(o);
    });
  };
  expect_contains(local([](Options& o) { o.clip_norm = 1; }),
                  "clip_norm 1 with a hook that does not reduce (parallel.local_steps is 2)");
  expect_contains(local([](Options& o) { o.guards.gradient.norm = 3; }), "guards.gradient.norm 3 with a hook");
  expect_contains(local([](Options& o) { o.guards.gradient.spike = 4; }), "guards.gradient.spike 4 with a hook");
  expect_contains(local([](Options& o) { o.guards.action = train::GuardAction::Skip; }),
                  "guards.action Skip with a hook");
  expect_contains(error([](Options& o) { o.guards.verify_every = -1; }), "memory is verified every -1 updates");
  expect_contains(error([](Options& o) { o.update.weight_decay = kNan; }), "the weight decay is nan");
  expect_contains(error([](Options& o) { o.update.groups = {{.pattern = "0.*", .rate_scale = -1}}; }),
                  "the scale of rates of group '0.*' is -1");
}

TEST(Steps, AfterAFailureNameIt) {
  Rig rig(fresh(), shared());
  data::Batch batch = rig.loader->next(), bad = rig.loader->next();
  bad.names[0] = "picture";
  EXPECT_NE(error_of([&] { rig.trainer->step(bad, 0.1); }), "no error");
  for (const bool evaluates : {false, true}) {
    expect_contains(
        error_of([&] { evaluates ? (void)rig.trainer->evaluate(*rig.loader) : (void)rig.trainer->step(batch, 0.1); }),
        "cannot be used after an earlier failure: [batch] no field 'image'");
  }
}

TEST(Options, ThatDifferBetweenRanksAreNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank";
  const auto network = make_mlp();
  const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
  const auto error = [&](auto change) {
    Task task = shared();
    if (is_last()) change(task.options);
    return error_of([&] { train::Trainer(fresh(), *network, models::classify(*network), fields, task.options); });
  };
  using Options = train::TrainerOptions;
  expect_contains(error([](Options& o) { o.clip_norm = 1; }), "a trainer's options must be the same on all ranks");
  expect_contains(error([](Options& o) { o.global_batch = 64; }), "has 'global batch 64'");
  expect_contains(error([](Options& o) { o.guards.compare_every = 7; }), "has 'compared every 7'");
  expect_contains(error([](Options& o) { o.rule = optim::sgd({.momentum = 0.8}); }), "has 'rule sgd momentum 0.8'");
  expect_contains(error([](Options& o) { o.autotune = true; }), "has 'autotune true'");
  expect_contains(error([](Options& o) { o.parallel.topk = 0.5; }), "has 'hook the largest 50%");
  expect_contains(error([](Options& o) { o.accumulate = 0; }), formatted("rank {} on host", world().size() - 1));
}

TEST(Functions, ThatAreMissingAreNamed) {
  const auto network = make_mlp();
  const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
  expect_contains(error_of([&] { train::Trainer(fresh(), *network, {}, fields, shared().options); }),
                  "the model function is empty");
  expect_contains(error_of([&] {
                    train::Trainer(
                        world(), *network, [](const plan::Inputs&) { return plan::Traced{}; }, fields,
                        shared().options);
                  }),
                  "loss");
  Rig rig(fresh(), shared());
  expect_contains(error_of([&] { rig.trainer->listen({}); }), "listen() got an empty function");
  expect_contains(error_of([&] { rig.trainer->before_update({}); }), "before_update() got an empty function");
}

// One rank's exception ends its step; the others, who wait for it in shared memory, hear of it and end theirs.
TEST(Callbacks, OfOneRankThatThrowLeaveNoOtherWaiting) {
  for (const bool asks : {true, false}) {
    Rig rig(fresh(), shared());
    const auto fails = [&] {
      if (is_last()) throw std::out_of_range("the callback's own trouble");
    };
    const std::string error = what_of([&] {
      rig.train(1);  // the others may hear of the failure while they end this step
      if (asks) {
        rig.trainer->listen([&] { return fails(), std::uint64_t{0}; });
      } else {
        rig.trainer->before_update([&] { return fails(), 1.0; });
      }
      rig.train(3);  // or end the one that fails, and not the next
    });
    expect_contains(error, is_last() ? "the callback's own trouble" : "of this node has failed");
  }
}

TEST(Callbacks, AFactorThatIsNoNumberIsRefused) {
  Rig rig(fresh(), shared());
  rig.trainer->before_update([] { return kNan; });
  // A rank may hear that another has failed before it asks for its own.
  const std::string error = error_of([&] { rig.train(1); });
  const bool own = error.find("the factor for the gradient of update 1 is nan") != std::string::npos;
  EXPECT_TRUE(own || error.find("of this node has failed") != std::string::npos) << error;
  EXPECT_EQ(world().allreduce(std::int32_t{own}, comm::ReduceOp::Max), 1);
}

TEST(Callbacks, AModelThatThrowsOnOneRankIsAllRanksError) {
  const auto network = make_mlp();
  const std::vector<data::Field> fields = {{"image", {1, 6, 6}, DType::F32}, {"label", {}, DType::I32}};
  const plan::ModelFunction model = [&](const plan::Inputs& in) {
    if (is_last()) throw std::out_of_range("the model's own trouble");
    return models::classify(*network)(in);
  };
  expect_contains(error_of([&] { train::Trainer(fresh(), *network, model, fields, shared().options); }),
                  "the model's own trouble");
}

TEST(Trainers, TwoOnOneCommunicatorDoNotDisturbEachOther) {
  const auto alone = run_task(fresh(), shared());
  const comm::Communicator both = fresh();
  Rig a(both, shared()), b(both, shared());
  for (std::int64_t step = 0; step < shared().steps; ++step) {
    a.train(1);
    b.train(1);
  }
  expect_same_bits(a, *alone, "the first");
  expect_same_bits(b, *alone, "the second");
}

TEST(Samples, OfTheWrongTypeAreNotWritten) {
  const std::vector<data::Field> fields = {{"x", {2}, DType::F32}};
  const auto error = [&](auto write) {
    data::StreamLoader stream({.fields = fields, .pull = [&](data::StreamSample& s) { return write(s), true; }});
    return error_of([&] { stream.next(); });
  };
  expect_contains(error([](data::StreamSample& s) { s.field<double>(0)[0] = 1; }),
                  "field 'x' is f32, field<T>() expects f64");
  expect_contains(error([](data::StreamSample& s) { s.field<float>(1)[0] = 1; }),
                  "there is no field 1, expected one of 1 fields");
}

}  // namespace
}  // namespace lockstep::test
