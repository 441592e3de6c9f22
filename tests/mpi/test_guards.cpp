// Memory that changes by itself, samples that are no numbers, gradients that jump: at a chosen rank, which has to be
// named, and what remains has to be what an undisturbed run has, bit for bit.
#include <limits>

#include "lockstep/parallel/reduce/bucket_hook.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/guard/known_product.h"
#include "tests/mpi/captured_log.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using train::GuardAction;
using train::OnMismatch;

Task guarded(const train::GuardOptions& guards, bool share) {
  Task task;
  task.options.rule = optim::sgd({.momentum = 0.9});
  task.options.guards = guards;
  task.options.parallel.share_weights = share;
  return task;
}

int last_rank() { return world().size() - 1; }

plan::ParameterStore& store(Rig& rig) { return rig.trainer->model().parameters(); }

// Who writes the last elements: the last rank, if there are blocks enough to share.
int owner(Rig& rig) {
  const std::int64_t blocks = (store(rig).buckets().front().elements + 1023) / 1024;
  return store(rig).memory().shares() ? std::min(last_rank(), static_cast<int>(blocks) - 1) : last_rank();
}

// A bit of what the owner wrote there; in values, or in the momentum.
void flip(Rig& rig, bool momentum = false) {
  if (world().rank() == owner(rig)) {
    const plan::Bucket& bucket = store(rig).buckets().front();
    std::byte* memory = momentum ? bucket.states[0] : bucket.values;
    memory[static_cast<std::size_t>(bucket.elements - 40) * 4 + 2] ^= std::byte{4};
  }
  world().barrier();
}

train::GuardOptions verifying(OnMismatch on_mismatch) { return {.verify_every = 1, .on_mismatch = on_mismatch}; }

TEST(Memory, UndisturbedRunsAreLeftAlone) {
  for (const bool share : {true, false}) {
    const Task task = guarded({.verify_every = 1, .compare_every = 2, .action = GuardAction::Stop}, share);
    Rig rig(world(), task);
    rig.train(3);
    const auto saved = rig.trainer->state();  // owners' values change on purpose, and nobody is accused
    const std::uint64_t hash = rig.trainer->weights_hash();
    rig.train(2);
    rig.trainer->load(saved, 3);
    EXPECT_EQ(rig.trainer->weights_hash(), hash);
    rig.train(4);
    store(rig).write("2.bias", Tensor(Shape{17}, DType::F32));
    store(rig).refresh();
    world().barrier();
    rig.train(2);
  }
}

TEST(Memory, AFlippedWeightIsRepairedFromACopy) {
  if (world().size() == 1) GTEST_SKIP() << "one copy";
  for (const std::int64_t every : {1, 3}) {
    Task task = guarded(verifying(OnMismatch::Repair), false);
    task.options.guards.verify_every = every;
    task.steps = 8;
    const auto undisturbed = run_task(world(), task);
    const CapturedLog log;
    Rig rig(world(), task);
    rig.train(2);  // with 3: the update whose checksums are recorded
    flip(rig);
    rig.train(2);
    flip(rig, true);  // of update 4, not recorded if only every third is
    if (every == 1) {
      rig.train(4);
      expect_same_bits(rig, *undisturbed, "repaired");
    }
    if (!world().is_root()) continue;
    expect_contains(log.text(), formatted("after update 2: rank {} on ", last_rank()));
    expect_contains(log.text(), ".weight [");
    expect_contains(log.text(), "(rank 0 on ");
    expect_contains(log.text(), "repaired from a copy; update 3 is repeated");
    if (every == 1) expect_contains(log.text(), "momentum of ");
    if (every == 1)
      expect_contains(log.text(), "is suspected again, but all ranks compute the known product correctly");
  }
}

TEST(Memory, WithoutACopyItStops) {
  Task task = guarded(verifying(OnMismatch::Repair), true);
  Rig rig(world(), task);
  rig.train(2);
  flip(rig);
  const std::string error = error_of([&] { rig.train(1); });
  expect_contains(error, formatted("[memory] after update 2: rank {} on ", owner(rig)));
  expect_contains(error, "has changed in memory");
}

TEST(Memory, WithoutACopyItRollsBack) {
  for (const bool share : {true, false}) {
    Task task = guarded(verifying(share ? OnMismatch::Repair : OnMismatch::RollBack), share);
    task.steps = 7;
    const auto undisturbed = run_task(world(), task);
    Rig rig(world(), task);
    rig.train(2);
    const auto saved = rig.trainer->state();
    const data::SamplerPosition position = rig.loader->position();
    int times = 0;
    rig.trainer->on_roll_back([&] {
      rig.trainer->load(saved, 2);
      rig.loader->seek(position);
      return ++times > 0;
    });
    rig.train(2);
    flip(rig, true);
    data::Batch batch = rig.loader->next();
    EXPECT_EQ(rig.trainer->step(batch, rig.lr).outcome, train::StepOutcome::RolledBack);
    EXPECT_EQ(rig.trainer->updates(), 2);
    rig.train(5);
    EXPECT_EQ(times, 1);
    EXPECT_EQ(rig.trainer->weights_hash(), undisturbed->trainer->weights_hash());
    EXPECT_EQ(distance(*rig.trainer, *undisturbed->trainer), 0.0);
  }
}

// Flips a bit of the weights, or of their average, before an evaluation with averages or in the middle of it.
TEST(Memory, DamageAroundAnEvaluationOfAveragesIsFound) {
  enum class When { Never, Before, DuringInValues, DuringInAverage, BeforeAMean };
  for (const bool share : {true, false}) {
    for (const When when :
         {When::Never, When::Before, When::DuringInValues, When::DuringInAverage, When::BeforeAMean}) {
      if (!share && (when == When::Before || when == When::DuringInValues)) continue;  // as in the average
      Task task = guarded(verifying(OnMismatch::Stop), share);
      task.options.average =
          when == When::BeforeAMean ? optim::AverageOptions{.swa_start = 1} : optim::AverageOptions{.ema = 0.5};
      Rig rig(world(), task);
      rig.train(3);
      if (when == When::Before || when == When::BeforeAMean) flip(rig);
      if (when == When::BeforeAMean) rig.trainer->add_to_average();
      const data::SamplerPosition position = rig.loader->position();
      rig.loader->seek({});
      bool flipped = false;
      rig.trainer->evaluate(*rig.loader, [&](std::int64_t) {
        if (flipped || (when != When::DuringInValues && when != When::DuringInAverage)) return;
        flipped = true;
        if (world().rank() != owner(rig)) return;
        const plan::Bucket& bucket = store(rig).buckets().front();
        std::byte* memory = when == When::DuringInValues ? bucket.values : bucket.states.back();
        memory[static_cast<std::size_t>(bucket.elements - 40) * 4 + 2] ^= std::byte{4};
      });
      rig.loader->seek(position);
      const std::string error = error_of([&] { rig.train(1); });
      if (when == When::Never) {
        EXPECT_EQ(error, "no error");
      } else {  // a mean that took in damage may make two copies differ, and nobody knows which is right: both are
                // named
        expect_contains(error, "[memory] after update 3: rank ");
        expect_contains(error, formatted("rank {} on ", owner(rig)));
      }
    }
  }
}

TEST(Memory, ARollBackThatFailsOnOneRankEndsAll) {
  Task task = guarded(verifying(OnMismatch::RollBack), false);
  Rig rig(Communicator::world(), task);  // of its own: the failure poisons it
  rig.train(2);
  const auto saved = rig.trainer->state();
  rig.trainer->on_roll_back([&]() -> bool {
    if (world().rank() == last_rank()) throw Error("[test] the way back is lost");
    rig.trainer->load(saved, 2);
    return true;
  });
  flip(rig);
  const std::string error = error_of([&] { rig.train(1); });
  expect_contains(error, world().rank() == last_rank() ? "the way back is lost" : "failed");
  EXPECT_NE(error_of([&] { rig.train(1); }), "no error");
}

TEST(Memory, AFlipBetweenTheLookAndTheUpdateIsFoundInTheNextStep) {
  Task task = guarded(verifying(OnMismatch::Repair), true);
  Rig rig(world(), task);
  rig.train(2);
  const plan::Bucket& bucket = store(rig).buckets().front();
  const bool mine = world().rank() == owner(rig);
  int calls = 0;
  rig.trainer->before_update([&] {
    if (++calls == 1 && mine) bucket.values[static_cast<std::size_t>(bucket.elements - 40) * 4] ^= std::byte{1};
    return 1.0;
  });
  rig.train(1);
  const std::string error = error_of([&] { rig.train(1); });
  expect_contains(error, formatted("[memory] after update 3: rank {} on ", owner(rig)));
}

TEST(Memory, DamageIsNotSaved) {
  for (const bool share : {true, false}) {
    Rig rig(world(), guarded(verifying(OnMismatch::Repair), share));
    rig.train(2);
    const std::uint64_t hash = rig.trainer->weights_hash();
    flip(rig);
    const std::string error = error_of([&] { rig.trainer->state(); });
    if (share || world().size() == 1) {
      expect_contains(error, "has changed in memory");
    } else {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(rig.trainer->weights_hash(), hash);
    }
  }
}

TEST(Copies, AreComparedAndTheMajorityRepairs) {
  if (world().size() < 3) GTEST_SKIP() << "no majority";
  for (const int what : {0, 1, 2}) {
    Task task = guarded({.verify_every = 0, .compare_every = 2}, false);
    if (what == 2) {
      task.network = make_resnet;
      task.channels = 3;
      task.side = 8;
    }
    const auto undisturbed = run_task(world(), task);
    const CapturedLog log;
    Rig rig(world(), task);
    rig.train(3);
    if (what < 2) flip(rig, what == 1);
    if (what == 2 && world().rank() == last_rank())
      static_cast<float*>(store(rig).value(store(rig).find("bn1.running_mean")))[0] += 1;
    rig.train(3);
    expect_same_bits(rig, *undisturbed, "repaired");
    if (world().is_root()) expect_contains(log.text(), formatted("after update 3: rank {} on ", last_rank()));
    if (world().is_root() && what == 2) expect_contains(log.text(), "bn1.running_mean has changed in memory");
  }
}

// The first two ranks are one node, the others another: copies of different numbers of ranks.
Communicator two_nodes() { return Communicator::world({.sharing_domain = world().rank() < 2 ? "one" : "other"}); }

TEST(Copies, OfTwoNodesRepairEachOther) {
  if (world().size() < 3) GTEST_SKIP() << "one node";
  const Communicator nodes = two_nodes();
  Task task = guarded({.verify_every = 1, .compare_every = 1, .on_mismatch = OnMismatch::Repair}, true);
  const auto undisturbed = run_task(nodes, task);
  const CapturedLog log;
  Rig rig(nodes, task);
  ASSERT_TRUE(store(rig).memory().shares());
  rig.train(2);
  if (world().rank() == last_rank()) {
    const plan::Bucket& bucket = store(rig).buckets().front();
    bucket.values[static_cast<std::size_t>(bucket.elements - 40) * 4] ^= std::byte{1};
  }
  world().barrier();
  rig.train(4);
  expect_same_bits(rig, *undisturbed, "repaired");
  if (!world().is_root()) return;
  expect_contains(log.text(), formatted("after update 2: rank {} on ", last_rank()));
  expect_contains(log.text(), "repaired from a copy");
}

TEST(Copies, StateThatIsHeldOnceIsNotRepaired) {
  if (world().size() < 3) GTEST_SKIP() << "one node";
  const Communicator nodes = two_nodes();
  Task task = guarded({.verify_every = 1, .compare_every = 1, .on_mismatch = OnMismatch::Repair}, true);
  task.options.parallel.shard_optimizer = true;
  // The last rank that holds elements: with few blocks of 1024, as weights that are not padded have, an earlier one.
  std::string error = "no error";
  int holder = last_rank();
  for (; error == "no error" && holder >= 0; --holder) {
    Rig rig(nodes, task);
    rig.train(3);
    if (world().rank() == holder) {
      const plan::Bucket& bucket = store(rig).buckets().front();
      bucket.states[0][static_cast<std::size_t>(bucket.elements - 40) * 4] ^= std::byte{1};
    }
    error = error_of([&] { rig.train(1); });
  }
  expect_contains(error, formatted("[memory] after update 3: rank {} on ", holder + 1));
  expect_contains(error, ": momentum of ");
}

TEST(Copies, OfLocalStepsDifferOnPurpose) {
  Task task = guarded({.compare_every = 1, .on_mismatch = OnMismatch::Stop}, false);
  task.options.shards = 0;
  task.options.parallel.local_steps = 2;
  task.options.parallel.hook = std::make_shared<parallel::LocalHook>();
  Rig rig(world(), task);
  rig.train(3);
  flip(rig);
  expect_contains(error_of([&] { rig.train(1); }), formatted("[memory] after update 3: rank {} on ", last_rank()));
}

TEST(Copies, TwoThatDifferStop) {
  if (world().size() != 2) GTEST_SKIP() << "two copies";
  Rig rig(world(), guarded({.verify_every = 0, .compare_every = 2}, false));
  rig.train(3);
  flip(rig);
  const std::string error = error_of([&] { rig.train(1); });
  expect_contains(error, "rank 0 on ");
  expect_contains(error, "rank 1 on ");
}

// Trains with the last sample of the third update multiplied, which is the last rank's.
std::string train_with_factor(Rig& rig, std::int64_t steps, float factor, std::int64_t* sample = nullptr) {
  return error_of([&] {
    for (std::int64_t s = 0; s < steps; ++s) {
      data::Batch batch = rig.loader->next();
      const auto row = static_cast<std::size_t>(batch.samples()) - 1;
      if (s == 2 && batch.step.local.end == batch.step.global_size) {
        for (std::size_t i = 0; i < 36; ++i) batch.at("image").data<float>()[36 * row + i] *= factor;
      }
      if (s == 2 && sample != nullptr) *sample = batch.step.samples[row];
      const train::Totals& totals = rig.trainer->step(batch, rig.lr);
      rig.losses.push_back(totals.outcome == train::StepOutcome::Skipped ? -1 : totals.loss);
      rig.loader->recycle(std::move(batch));
    }
  });
}

TEST(Loss, NotANumberStopsAndNamesRankAndSample) {
  Rig rig(world(), guarded({.action = GuardAction::Stop}, true));
  std::int64_t sample = 0;
  const std::string error = train_with_factor(rig, 3, kNan, &sample);
  sample = world().broadcast_value(sample, last_rank());
  expect_contains(error, "[guard] update 3: the loss is nan");
  expect_contains(error, formatted("rank {} on {}: 'image' of sample {} is not finite", last_rank(),
                                   world().topology().host(last_rank()), sample));
  for (int r = 0; r < last_rank(); ++r) EXPECT_EQ(error.find(formatted("rank {} on", r)), std::string::npos) << error;
}

TEST(Loss, ABadParameterIsNamed) {
  Rig rig(world(), guarded({.action = GuardAction::Stop}, true));
  rig.train(1);
  Tensor bias(Shape{17}, DType::F32);
  bias.data<float>()[4] = kNan;
  store(rig).write("2.bias", bias);
  store(rig).refresh();
  world().barrier();
  expect_contains(error_of([&] { rig.train(1); }), "the parameter 2.bias is not finite");
}

TEST(Loss, AnOverflowIsNamedByItsLayer) {
  Rig rig(world(), guarded({.action = GuardAction::Stop}, true));
  Tensor weight(Shape{17, 31}, DType::F32);
  std::ranges::fill(weight.data<float>(), 1e38F);
  store(rig).write("2.weight", weight);
  store(rig).refresh();
  world().barrier();
  expect_contains(error_of([&] { rig.train(1); }), "first in 2 (");
}

// The weights overflow for the changed sample alone, so the last rank alone finds it.
TEST(Loss, AnOverflowOnOneRankIsADivergenceToo) {
  Rig rig(world(), guarded({.action = GuardAction::Stop}, true));
  rig.lr = 0;
  Tensor weight(Shape{17, 31}, DType::F32);
  std::ranges::fill(weight.data<float>(), 1e20F);
  store(rig).write("2.weight", weight);
  store(rig).refresh();
  world().barrier();
  const std::string error = train_with_factor(rig, 3, 1e20F);
  expect_contains(error, "[guard] update 3: the loss is ");
  expect_contains(error, ": first in ");
  expect_contains(error, "; training may have diverged");
}

TEST(Skipping, LeavesTheSameBitsOnAnyNumberOfRanks) {
  for (const float factor : {kNan, -3000.0F}) {
    for (const parallel::Wire wire : {parallel::Wire::Exact, parallel::Wire::BF16}) {
      for (const bool share : {true, false}) {
        train::GuardOptions guards{.verify_every = 1, .compare_every = 1, .action = GuardAction::Skip};
        guards.gradient.norm = std::isnan(factor) ? 0 : 60;
        Task task = guarded(guards, share);
        task.options.parallel.wire = wire;
        Rig alone(Communicator::self(), task), rig(world(), task);
        EXPECT_EQ(train_with_factor(alone, 5, factor), "no error");
        EXPECT_EQ(train_with_factor(rig, 5, factor), "no error");
        EXPECT_EQ(rig.losses[2], -1) << factor;
        EXPECT_EQ(rig.trainer->skipped(), 1);
        expect_same_bits(rig, alone, formatted("factor {}", factor));
        EXPECT_TRUE(std::isfinite(rig.losses[4]));
      }
    }
  }
}

TEST(Skipping, LeavesEverythingAsItWas) {
  Task task = guarded({.action = GuardAction::Skip}, true);
  task.network = make_resnet;
  task.channels = 3;
  task.side = 8;
  task.options.rule = optim::adam({});
  Rig rig(world(), task);
  rig.train(2);
  const auto before = rig.trainer->state();
  data::Batch batch = rig.loader->next();
  if (world().rank() == last_rank()) batch.at("image").data<float>()[5] = kNan;
  EXPECT_EQ(rig.trainer->step(batch, 0.1).outcome, train::StepOutcome::Skipped);
  const auto after = rig.trainer->state();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t t = 0; t < before.size(); ++t) {
    EXPECT_TRUE(std::ranges::equal(std::span(before[t].tensor.raw(), before[t].tensor.bytes()),
                                   std::span(after[t].tensor.raw(), after[t].tensor.bytes())))
        << before[t].name;
  }
  EXPECT_EQ(rig.trainer->updates(), 3);
}

TEST(Skipping, EndsWhenItIsNoAccident) {
  Rig rig(world(), guarded({.action = GuardAction::Skip}, true));
  data::Batch batch = rig.loader->next();
  for (float& v : batch.at("image").data<float>()) v = kNan;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.trainer->step(batch, 0.1).outcome, train::StepOutcome::Skipped);
  expect_contains(error_of([&] { rig.trainer->step(batch, 0.1); }), "the 10 updates before it were skipped");
}

TEST(Gradient, ASpikeNamesRankAndParameter) {
  for (const bool relative : {false, true}) {
    train::GuardOptions guards{.action = GuardAction::Stop};
    (relative ? guards.gradient.spike : guards.gradient.norm) = relative ? 20 : 60;
    Rig rig(world(), guarded(guards, true));
    if (relative) rig.train(20);  // until there is a mean
    const std::string error = train_with_factor(rig, 3, -3000);
    expect_contains(error, relative ? "update 23: the gradient" : "update 3: the gradient has norm ");
    expect_contains(error, "; the largest part belongs to ");
    expect_contains(error, formatted(".weight and comes from rank {} on ", last_rank()));
  }
}

TEST(Gradient, OnlyLoggedWhereThatIsAskedFor) {
  train::GuardOptions guards{.action = GuardAction::Log};
  guards.gradient.norm = 60;
  const CapturedLog log;
  Rig rig(world(), guarded(guards, true));
  EXPECT_EQ(train_with_factor(rig, 3, -3000), "no error");
  EXPECT_EQ(rig.trainer->skipped(), 0);
  if (world().is_root()) expect_contains(log.text(), "guard: update 3: the gradient has norm");
}

TEST(Gradient, AStepWithoutSamplesWarnsOfNothing) {
  train::GuardOptions guards{.action = GuardAction::Log};
  guards.gradient.norm = 60;
  Task task = guarded(guards, true);
  task.options.shards = 0;  // streams
  const CapturedLog log;
  Rig rig(world(), task);
  EXPECT_EQ(train_with_factor(rig, 3, -3000), "no error");
  EXPECT_EQ(rig.trainer->step(std::optional<data::Batch>(), rig.lr).samples, 0);
  if (world().is_root()) expect_contains(log.text(), "(warning 1)");
  EXPECT_EQ(log.text().find("(warning 2)"), std::string::npos) << log.text();
}

TEST(Product, IsExact) {
  const train::KnownProduct product = train::known_product();
  EXPECT_EQ(product.computed, product.expected);
}

}  // namespace
}  // namespace lockstep::test
