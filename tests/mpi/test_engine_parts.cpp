// The parts of GradientEngine that need other ranks, one by one: memory that ranks see of each other, channels, sums,
// owned parts, averages of replicas, and damage that is found and repaired across ranks.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/format.h"
#include "lockstep/nn/init.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/step/step_channels.h"
#include "lockstep/parallel/step/step_memory.h"
#include "lockstep/parallel/update/owned_parts.h"
#include "lockstep/parallel/update/replica_average.h"
#include "tests/mpi/reduction.h"

namespace lockstep::test {
namespace {

constexpr std::size_t kStatistics = 4;

// Memory, channels and reducer of a step over two parameters, a bucket each.
class PartsRig {
 public:
  explicit PartsRig(const parallel::Domains& domains, std::int64_t shards = 0, bool share = true,
                    const parallel::Ownership& ownership = {true})
      : comm_(world().duplicate()),
        where_(layout(shards)),
        memory_(comm_, domains, share),
        store_({{"a", &a_}, {"b", &b_}}, {.gradient_slots = where_.my_slots(),
                                          .optimizer_states = 1,
                                          .bucket_bytes = 1,
                                          .memory = &memory_,
                                          .states_by_owner = ownership.across_domains}) {
    store_.allocate({}, {&a_, &b_});
    step_ = std::make_unique<parallel::StepMemory>(
        memory_, store_, where_,
        parallel::StepMemory::Size{.control = parallel::StepSums::size(1), .statistics = kStatistics, .squares = true});
    channels_ = std::make_unique<parallel::StepChannels>(
        comm_, memory_,
        parallel::StepChannels::Flags{.reduction = step_->reduction_flags(), .control = step_->control_flags()});
    reducer_ = std::make_unique<parallel::BucketReducer>(channels_->gradients().transport, channels_->gradients().flags,
                                                         domains, where_, parallel::ReducerOptions{});
    reducer_->add_bucket(step_->statistics_memory());
    for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
      parallel::BucketMemory bucket = step_->gradient_memory(b);
      bucket.everywhere = !ownership.by_owner;
      if (ownership.across_domains) bucket.values = store_.buckets()[b].values;
      reducer_->add_bucket(std::move(bucket));
    }
    owned_ = std::make_unique<parallel::OwnedParts>(store_, *reducer_, memory_.domains(), ownership);
  }

  const comm::Communicator& comm() const { return comm_; }
  const parallel::WorldLayout& where() const { return where_; }
  parallel::NodeMemory& memory() { return memory_; }
  plan::ParameterStore& store() { return store_; }
  parallel::StepMemory& step() { return *step_; }
  parallel::StepChannels& channels() { return *channels_; }
  parallel::OwnedParts& owned() { return *owned_; }
  float* values(std::size_t bucket) { return reinterpret_cast<float*>(store_.buckets()[bucket].values); }
  float* gradients(std::size_t bucket) { return reinterpret_cast<float*>(store_.buckets()[bucket].gradients[0]); }

 private:
  Parameter a_{.shape = Shape{9000}, .initialize = nn::constant(1)},
      b_{.shape = Shape{20}, .initialize = nn::constant(1)};
  comm::Communicator comm_;
  parallel::WorldLayout where_;
  parallel::NodeMemory memory_;
  plan::ParameterStore store_;
  std::unique_ptr<parallel::StepMemory> step_;
  std::unique_ptr<parallel::StepChannels> channels_;
  std::unique_ptr<parallel::BucketReducer> reducer_;
  std::unique_ptr<parallel::OwnedParts> owned_;
};

// Number `slot` of rank r's memory.
double mark(int rank, std::size_t slot) { return 100.0 * rank + static_cast<double>(slot); }

TEST(StepMemory, RanksOfADomainFindEachOthersSlots) {
  for (const auto& [name, domains] : groupings()) {
    for (const std::int64_t shards : shard_counts()) {
      const std::string what = formatted("{}, {} shards", name, shards);
      PartsRig rig(domains, shards);
      const auto mine = rig.step().statistics();
      ASSERT_EQ(std::ssize(mine), rig.where().my_slots());
      for (std::size_t s = 0; s < mine.size(); ++s) {
        ASSERT_EQ(mine[s].size(), kStatistics);
        std::ranges::fill(mine[s], mark(world().rank(), s));
        for (std::size_t b = 0; b < 2; ++b) {
          auto* gradient = reinterpret_cast<float*>(rig.store().buckets()[b].gradients[s]);
          std::fill_n(gradient, rig.store().buckets()[b].elements, static_cast<float>(mark(world().rank(), s)));
        }
      }
      world().barrier();
      const parallel::BucketMemory statistics = rig.step().statistics_memory();
      for (std::size_t l = 0; l < domains.local().size(); ++l) {
        const int rank = domains.local()[l];
        for (std::size_t s = 0; s < statistics.slots[l].size(); ++s) {
          EXPECT_EQ(static_cast<const double*>(statistics.slots[l][s])[kStatistics - 1], mark(rank, s)) << what;
          for (std::size_t b = 0; b < 2; ++b) {
            const parallel::BucketMemory bucket = rig.step().gradient_memory(b);
            EXPECT_EQ(static_cast<const float*>(bucket.slots[l][s])[bucket.elements - 1], mark(rank, s)) << what;
          }
        }
        EXPECT_EQ(rig.step().gradient(1, static_cast<int>(l)), rig.step().gradient_memory(1).slots[l][0]) << what;
      }
      world().barrier();
    }
  }
}

TEST(StepMemory, SquaresAreOnePerBlockAndCleared) {
  PartsRig rig(one_domain().domains);
  const std::span<double> squares = rig.step().squares();
  ASSERT_EQ(squares.size(), 10U) << "9 blocks of 1024 for a, 1 for b";
  EXPECT_EQ(rig.step().gradient_memory(0).squares.size(), 9U);
  EXPECT_EQ(rig.step().gradient_memory(1).squares.data(), squares.data() + 9);
  std::ranges::fill(squares, 3.0);
  std::ranges::fill(rig.step().statistics()[0], 4.0);
  rig.step().clear_squares();
  EXPECT_TRUE(std::ranges::all_of(squares, [](double s) { return s == 0; }));
  EXPECT_EQ(rig.step().statistics()[0][kStatistics - 1], 4) << "nothing else is cleared";
  EXPECT_GT(rig.step().bytes(), 10 * sizeof(double));
  world().barrier();
}

TEST(StepChannels, APeerThatFailsIsToldByItsDomain) {
  if (world().size() == 1) GTEST_SKIP() << "there is no peer";
  PartsRig rig(one_domain().domains);
  rig.channels().check_peers();
  world().barrier();
  if (world().rank() == 0) rig.channels().fail();
  world().barrier();
  const std::string error = error_of([&] { rig.channels().check_peers(); });
  EXPECT_NE(error.find("local rank 0 of this node has failed"), std::string::npos) << error;
  world().barrier();
}

TEST(StepChannels, ARankLeavesOnce) {
  PartsRig rig(one_domain().domains);
  EXPECT_FALSE(rig.channels().has_left());
  rig.channels().leave(3, false);
  rig.channels().leave(4, true);
  EXPECT_TRUE(rig.channels().has_left());
  world().barrier();
  const std::string error = error_of([&] { rig.channels().gradients().flags.check_nobody_left(); });
  EXPECT_NE(error.find("has left after update 3"), std::string::npos) << error;
  rig.channels().check_peers();  // what a rank sent before it left may still come
  world().barrier();
}

class CountingHook : public parallel::LocalHook {
 public:
  explicit CountingHook(int& begun) : begun_(begun) {}
  void begin(const comm::Communicator&, std::span<const std::int64_t> elements) override {
    begun_ += static_cast<int>(elements.size());
  }
  void end() override { begun_ = -1; }

 private:
  int& begun_;
};

TEST(StepChannels, AHookEndsWithThem) {
  int begun = 0;
  CountingHook hook(begun);
  {
    PartsRig rig(one_domain().domains);
    const std::vector<std::int64_t> elements{1, 2, 3};
    rig.channels().begin_hook(rig.comm(), hook, elements);
    EXPECT_EQ(begun, 3);
  }
  EXPECT_EQ(begun, -1);
}

TEST(StepSums, AllRanksReadTheSame) {
  for (const auto& [name, domains] : groupings()) {
    for (const std::int64_t shards : shard_counts()) {
      const std::string what = formatted("{}, {} shards", name, shards);
      PartsRig rig(domains, shards);
      parallel::StepSums sums(rig.channels().control().transport, rig.channels().control().flags,
                              rig.step().control_blocks(), domains, rig.where(), 1);
      const int rank = world().rank();
      for (std::int64_t step = 1; step <= 3; ++step) {
        sums.begin({.samples = 8,
                    .position = 5,
                    .driver = 40U + static_cast<std::uint64_t>(rank),
                    .requests = std::uint64_t{1} << rank,
                    .learning_rate = 0.1,
                    .update = step});
        double weight = 0;
        for (parallel::ShardWalk walk(rig.where()); !walk.done(); walk.next()) {
          EXPECT_EQ(sums.shard()[parallel::kOtherSums], 0) << what;
          sums.shard()[parallel::kWeightSum] = 2;
          sums.shard()[parallel::kSampleSum] = 2;
          sums.shard()[parallel::kLossSum] = number(walk.shard(), step);
          sums.shard()[parallel::kOtherSums] = 1;
          sums.count_shard();
          weight += 2;
          sums.tell({.damage = 7, .digest = static_cast<std::uint64_t>(rank), .own = 9});
          sums.end_shard(rank + 1);
        }
        EXPECT_EQ(sums.local_weight(), weight) << what;
        drive([&] { return sums.progress(); }, [&] { return sums.complete(); });
        sums.add_up();
        const auto shard_count = static_cast<double>(rig.where().tree.shards());
        EXPECT_EQ(sums.sums()[parallel::kWeightSum], 2 * shard_count) << what;
        EXPECT_EQ(sums.sums()[parallel::kOtherSums], shard_count) << what;
        EXPECT_EQ(sums.sums()[parallel::kLossSum],
                  expected_sums<double>(rig.where().tree.shards(), parallel::Wire::Exact, step, 1)[0])
            << what;
        EXPECT_EQ(sums.requests(), (std::uint64_t{1} << world().size()) - 1) << what;
        EXPECT_EQ(sums.root_driver(), 40U) << what;
        EXPECT_EQ(sums.slowest().rank, world().size() - 1) << what;
        EXPECT_NEAR(sums.slowest().lead, world().size() - 1, 1e-6) << what;
        for (int r = 0; r < world().size(); ++r)
          EXPECT_EQ(sums.memory_of(r).digest, static_cast<std::uint64_t>(r)) << what;
      }
      world().barrier();
    }
  }
}

TEST(StepSums, SamplesWithoutWeightAreRefused) {
  PartsRig rig(one_domain().domains);
  parallel::StepSums sums(rig.channels().control().transport, rig.channels().control().flags,
                          rig.step().control_blocks(), one_domain().domains, rig.where(), 1);
  sums.begin({.samples = 1, .learning_rate = 0.1, .update = 12});
  sums.shard()[parallel::kSampleSum] = 1;
  sums.count_shard();
  sums.end_shard(0);
  drive([&] { return sums.progress(); }, [&] { return sums.complete(); });
  const std::string error = error_of([&] { sums.add_up(); });
  EXPECT_EQ(error, formatted("[step] update 12: the weights of {} samples add up to 0", world().size()));
  world().barrier();
}

TEST(OwnedParts, EveryElementHasOneOwner) {
  for (const auto& [name, domains] : groupings()) {
    for (const bool across : {false, true}) {
      if (across && domains.count() == 1) continue;
      PartsRig rig(domains, 0, true, {.by_owner = true, .across_domains = across});
      for (std::size_t b = 0; b < 2; ++b) {
        const auto elements = static_cast<std::size_t>(rig.store().buckets()[b].elements);
        std::vector<std::int32_t> owners(elements), received(elements);
        for (const Range range : rig.owned().updated(b))
          std::fill(owners.begin() + range.begin, owners.begin() + range.end, 1);
        for (const Range range : rig.owned().received(b))
          std::fill(received.begin() + range.begin, received.begin() + range.end, 1);
        world().allreduce(std::span(owners), comm::ReduceOp::Sum);
        world().allreduce(std::span(received), comm::ReduceOp::Sum);
        const std::int32_t expected = across ? 1 : domains.count();
        EXPECT_TRUE(std::ranges::all_of(owners, [&](auto n) { return n == expected; })) << name;
        const std::int32_t others = across ? domains.count() - 1 : 0;
        EXPECT_TRUE(std::ranges::all_of(received, [&](auto n) { return n == others; })) << name;
      }
    }
  }
}

TEST(OwnedParts, CollectedGradientsAreWhole) {
  for (const auto& [name, domains] : groupings()) {
    const parallel::Ownership ownership{.by_owner = true, .across_domains = domains.count() > 1};
    PartsRig rig(domains, 0, true, ownership);
    for (std::size_t b = 0; b < 2; ++b) {
      std::fill_n(rig.gradients(b), rig.store().buckets()[b].elements, -1.0F);
      for (const Range range : rig.owned().updated(b)) {
        for (std::int64_t i = range.begin; i < range.end; ++i) rig.gradients(b)[i] = static_cast<float>(i % 1000);
      }
    }
    world().barrier();
    rig.owned().collect_gradients(rig.comm(), rig.step());
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < rig.store().buckets()[b].elements; ++i)
        ASSERT_EQ(rig.gradients(b)[i], static_cast<float>(i % 1000)) << name << ", bucket " << b << ", element " << i;
    }
    world().barrier();
  }
}

TEST(ReplicaAverage, ReplicasBecomeTheirMean) {
  PartsRig rig(grouping("single ranks", [](int r) { return r; }).domains, 0, false);
  parallel::ReplicaAverage average(rig.store(), {.active = true, .local_steps = 2});
  EXPECT_FALSE(average.replicas_differ());
  EXPECT_FALSE(average.after_update(1));
  EXPECT_TRUE(average.after_update(2));
  EXPECT_TRUE(average.replicas_differ());
  rig.values(0)[7] = static_cast<float>(world().rank());
  reinterpret_cast<float*>(rig.store().buckets()[1].states[0])[3] = static_cast<float>(2 * world().rank());
  average.run(rig.comm());
  EXPECT_FALSE(average.replicas_differ());
  EXPECT_FLOAT_EQ(rig.values(0)[7], static_cast<float>(world().size() - 1) / 2);
  EXPECT_FLOAT_EQ(reinterpret_cast<float*>(rig.store().buckets()[1].states[0])[3],
                  static_cast<float>(world().size() - 1));
  EXPECT_EQ(rig.values(0)[8], 1);
  parallel::ReplicaAverage inactive(rig.store(), {});
  EXPECT_FALSE(inactive.after_update(1));
}

// Every rank has a copy of its own; the last rank's is damaged after its checksums were recorded.
TEST(MemoryGuard, AnExaminationNamesTheRankAndRepairsFromACopy) {
  const parallel::Domains domains = grouping("single ranks", [](int r) { return r; }).domains;
  PartsRig rig(domains, 0, false);
  std::vector<int> copies(static_cast<std::size_t>(world().size()));
  std::iota(copies.begin(), copies.end(), 0);
  std::vector<std::vector<parallel::MemoryChecksums::Part>> parts;
  for (const plan::Bucket& b : rig.store().buckets()) parts.push_back({{{0, b.elements}, true}});
  parallel::MemoryGuard guard(rig.store(), std::move(parts),
                              {.verify_every = 1, .copy_of = copies, .state_names = {"momentum"}});
  parallel::StepSums sums(rig.channels().control().transport, rig.channels().control().flags,
                          rig.step().control_blocks(), domains, rig.where(), 1);
  const int last = world().size() - 1;
  for (const bool damaged : {false, true}) {
    if (damaged && world().rank() == last) rig.values(0)[2000] = 8;
    sums.begin({.update = 1});
    sums.count_shard();
    sums.tell(guard.look(1));
    sums.end_shard(0);
    drive([&] { return sums.progress(); }, [&] { return sums.complete(); });
    sums.add_up();
    EXPECT_EQ(guard.is_damaged(sums), damaged);
    EXPECT_EQ(guard.is_intact(), !damaged || world().rank() != last);
  }
  const std::vector<parallel::MemoryDamage> found = guard.examine(rig.comm(), sums, true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, last);
  EXPECT_EQ(found[0].what, "a [1024, 2048)");
  EXPECT_EQ(found[0].source, world().size() == 1 ? -1 : 0);
  EXPECT_EQ(rig.values(0)[2000], world().size() == 1 ? 8 : 1);
  EXPECT_TRUE(guard.is_intact());
  EXPECT_TRUE(guard.examine(rig.comm(), sums, true).empty());
  world().barrier();
}

// Buckets may be updated after the step has ended: what is recorded stays valid, so damage behind the update is found.
TEST(MemoryGuard, FindsDamageBehindALateUpdate) {
  const parallel::Domains domains = grouping("single ranks", [](int r) { return r; }).domains;
  PartsRig rig(domains, 0, false);
  std::vector<std::vector<parallel::MemoryChecksums::Part>> parts;
  for (const plan::Bucket& b : rig.store().buckets()) parts.push_back({{{0, b.elements}, true}});
  parallel::MemoryGuard guard(
      rig.store(), std::move(parts),
      {.verify_every = 1, .copy_of = std::vector<int>(static_cast<std::size_t>(world().size()))});
  const std::vector<Range> whole{{0, rig.store().buckets()[0].elements}};
  EXPECT_EQ(guard.look(1).damage, 0U);
  guard.end_step(true);
  guard.verify_before_update(0, whole);
  rig.values(0)[2000] += 1;  // the late update
  rig.store().values_changed();
  guard.record(0, whole);
  EXPECT_TRUE(guard.is_intact());
  rig.values(0)[2000] += 1;  // the damage
  EXPECT_FALSE(guard.is_intact());
  EXPECT_NE(guard.look(2).damage, 0U);
}

// A rank whose checksums are not those of its values compares alike with the others.
TEST(MemoryGuard, AnExaminationIsOneOnAllRanks) {
  const parallel::Domains domains = grouping("single ranks", [](int r) { return r; }).domains;
  PartsRig rig(domains, 0, false);
  std::vector<int> copies(static_cast<std::size_t>(world().size()));
  std::iota(copies.begin(), copies.end(), 0);
  std::vector<std::vector<parallel::MemoryChecksums::Part>> parts;
  for (const plan::Bucket& b : rig.store().buckets()) parts.push_back({{{0, b.elements}, true}});
  parallel::MemoryGuard guard(rig.store(), std::move(parts), {.verify_every = 1, .copy_of = copies});
  parallel::StepSums sums(rig.channels().control().transport, rig.channels().control().flags,
                          rig.step().control_blocks(), domains, rig.where(), 1);
  sums.begin({.update = 1});
  sums.count_shard();
  sums.tell(guard.look(1));
  sums.end_shard(0);
  drive([&] { return sums.progress(); }, [&] { return sums.complete(); });
  sums.add_up();
  const float before = rig.values(0)[2000];
  if (world().is_root()) rig.store().values_changed();
  if (is_last()) rig.values(0)[2000] = 8;
  const std::vector<parallel::MemoryDamage> found = guard.examine(rig.comm(), sums, true);
  comm::check_same(world(), "findings", formatted("{}", found.size()));
  EXPECT_EQ(found.empty(), world().size() == 1) << "one copy alone, without a valid checksum, is right";
  if (world().size() > 2) {
    EXPECT_EQ(rig.values(0)[2000], before) << "two copies are equal";
  }
  EXPECT_TRUE(guard.is_intact());
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
