// GradientEngine against a step computed from the canonical tree and the update rule alone: gradients, sums, parameters
// and optimizer state have the same bits for every grouping of ranks into domains and in every mode.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/mpi/engine_rig.h"

namespace lockstep::test {
namespace {

template <class T>
void check_steps(const EngineCase& c, const std::string& what) {
  EngineRig rig(c);
  EngineReference<T> reference(c);
  const std::int64_t shards = rig.where().tree.shards();
  for (std::int64_t step = 0; step < 3; ++step) {
    const std::set<std::int64_t> empty = step == 1 && shards > 1 ? std::set{shards - 1} : std::set<std::int64_t>{};
    const std::string in_step = formatted("{}, step {}", what, step);
    rig.run_step(step, empty);
    reference.run_step(step, empty);
    reference.expect_sums(rig, in_step);
    reference.expect_values(rig, in_step);
    rig.engine().collect_gradients();
    reference.expect_gradients(rig, in_step);
  }
  rig.engine().fence();
  rig.engine().collect_states();
  if (world().is_root()) reference.expect_states(rig, what);
  rig.engine().drop_foreign_states();
  rig.engine().fence();
}

void check_everywhere(EngineCase c, const std::string& what) {
  for (const auto& [name, domains] : groupings()) {
    for (const std::int64_t shards : shard_counts()) {
      c.domains = domains;
      c.shards = shards;
      const std::string where = formatted("{}: {}, {} shards", what, name, shards);
      c.dtype == DType::F64 ? check_steps<double>(c, where) : check_steps<float>(c, where);
    }
  }
}

TEST(GradientEngine, UpdatesByTheTreesSums) {
  check_everywhere({}, "f32");
  check_everywhere({.dtype = DType::F64, .bucket_bytes = 1 << 20, .rule = optim::adam({})}, "f64, one bucket");
  check_everywhere({.bucket_bytes = 1, .options = {.reduction = {.piece_bytes = 4096}}}, "a bucket per parameter");
}

TEST(GradientEngine, RanksMayKeepWeightsOfTheirOwn) { check_everywhere({.share = false}, "unshared"); }

TEST(GradientEngine, AThreadMayDrive) {
  check_everywhere({.options = {.thread = true}}, "thread");
  check_everywhere({.share = false, .options = {.thread = true}}, "thread, unshared");
}

TEST(GradientEngine, AShardedOptimizerChangesNothing) {
  check_everywhere({.options = {.shard_optimizer = true}}, "sharded");
  check_everywhere({.bucket_bytes = 1, .options = {.shard_optimizer = true, .thread = true}, .rule = optim::adam({})},
                   "sharded, thread");
}

TEST(GradientEngine, NarrowWiresRoundAtEveryEdge) {
  check_everywhere({.options = {.reduction = {.wire = parallel::Wire::BF16}}}, "bf16");
  check_everywhere({.options = {.shard_optimizer = true, .reduction = {.wire = parallel::Wire::F16}}}, "f16");
}

// A state that a rank does not own takes no memory that it was given: dropped states read as zero in whole pages.
TEST(GradientEngine, ForeignStatesAreDropped) {
  if (world().size() == 1) GTEST_SKIP() << "all is its own";
  EngineCase c{.domains = grouping("single ranks", [](int r) { return r; }).domains,
               .bucket_bytes = 1 << 20,
               .options = {.shard_optimizer = true}};
  EngineRig rig(c);
  const plan::Bucket& bucket = rig.store().buckets()[0];
  auto* state = reinterpret_cast<float*>(bucket.states[0]);
  std::fill_n(state, bucket.elements, 1.0F);
  rig.engine().drop_foreign_states();
  const auto kept = std::count(state, state + bucket.elements, 1.0F);
  std::int64_t owned = 0;
  for (const Range range : rig.engine().reducer().owned(1)) {  // reduction 0 is the statistics'
    owned += range.size();
    EXPECT_TRUE(std::all_of(state + range.begin, state + range.end, [](float v) { return v == 1; }));
  }
  constexpr std::int64_t kPage = 1024;
  EXPECT_LE(kept, owned + 2 * kPage);
  EXPECT_LT(kept, bucket.elements);
}

template <class T>
void check_clipping(const EngineCase& c, const std::string& what) {
  EngineRig rig(c);
  EngineReference<T> reference(c);
  for (std::int64_t step = 0; step < 3; ++step) {
    rig.run_step(step);
    EngineReference<T> unclipped = reference;
    unclipped.run_step(step);
    const double norm = rig.engine().gradient_norm();
    EXPECT_NEAR(norm / unclipped.norm, 1, 1e-12) << what << ", step " << step;
    EXPECT_GT(norm, c.options.clip_norm) << "else nothing is clipped";
    for (const std::uint64_t bits : world().allgather(std::bit_cast<std::uint64_t>(norm)))
      EXPECT_EQ(bits, std::bit_cast<std::uint64_t>(norm)) << what;
    reference.run_step(step, {}, c.options.clip_norm / (norm + 1e-6));
    reference.expect_values(rig, formatted("{}, step {}", what, step));
  }
}

TEST(GradientEngine, ClipsByTheNormOfTheWholeGradient) {
  EngineCase c{.options = {.clip_norm = 0.5}};
  for (const auto& [name, domains] : groupings()) {
    for (const std::int64_t shards : shard_counts()) {
      c.domains = domains;
      c.shards = shards;
      for (const bool sharded : {false, true}) {
        c.options.shard_optimizer = sharded;
        c.share = !sharded || domains.slices() > 1;
        check_clipping<float>(c, formatted("{}, {} shards, sharded optimizer {}", name, shards, sharded));
      }
      c.options.shard_optimizer = false;
      c.share = false;
      check_clipping<float>(c, formatted("{}, {} shards, unshared", name, shards));
    }
  }
}

// Written down, as it must be the same at every number of ranks.
constexpr double kNormOfNineShards = 0x1.3efd1bc6fed7ep+9;

TEST(GradientEngine, TheNormHasTheSameBitsInEveryGrouping) {
  std::set<std::uint64_t> norms;
  for (const auto& [name, domains] : groupings()) {
    EngineRig rig({.domains = domains, .shards = 9, .options = {.clip_norm = 1e9}});
    rig.run_step(0);
    norms.insert(std::bit_cast<std::uint64_t>(rig.engine().gradient_norm()));
  }
  EXPECT_EQ(norms.size(), 1u);
  EXPECT_EQ(std::bit_cast<double>(*norms.begin()), kNormOfNineShards)
      << formatted("{:a}", std::bit_cast<double>(*norms.begin()));
}

TEST(GradientEngine, TheGradientMayBeInspectedBeforeTheUpdate) {
  for (const auto& [name, domains] : groupings()) {
    EngineCase c{.domains = domains, .shards = 9, .options = {.shard_optimizer = domains.count() > 1}};
    EngineRig rig(c);
    EngineReference<float> reference(c);
    int calls = 0;
    rig.engine().before_update([&] {
      ++calls;
      const parallel::WorldLayout& where = rig.where();
      for (std::size_t b = 0; b < rig.store().buckets().size(); ++b) {
        const plan::Bucket& bucket = rig.store().buckets()[b];
        for (const Range range : rig.engine().reducer().owned_by(static_cast<int>(b) + 1, where.rank)) {
          const auto* sums = reinterpret_cast<const float*>(bucket.gradients[0]);
          for (const plan::BucketEntry& e : bucket.entries) {
            const auto p = static_cast<std::size_t>(e.name[1] - '0');
            for (std::int64_t i = 0; i < kParameters[p]; ++i) {
              const std::int64_t at = e.offset + i;
              if (at < range.begin || at >= range.end) continue;
              EXPECT_EQ(sums[at], tree_sum_of<float>(9, parallel::Wire::Exact, [&](std::int64_t shard) {
                          return number(shard, gradient_shift(p, calls - 1) + i);
                        }));
            }
          }
        }
      }
      return 0.25;
    });
    for (std::int64_t step = 0; step < 2; ++step) {
      rig.run_step(step);
      reference.run_step(step, {}, 0.25);
      EXPECT_EQ(calls, step + 1);
      reference.expect_values(rig, formatted("{}, step {}", name, step));
    }
  }
}

TEST(GradientEngine, AStepWithoutSamplesChangesNothing) {
  for (const auto& [name, domains] : groupings()) {
    for (const double clip_norm : {0.0, 0.5}) {
      EngineCase c{.domains = domains, .options = {.clip_norm = clip_norm}};
      EngineRig rig(c);
      const EngineReference<float> reference(c);
      std::set<std::int64_t> all;
      for (std::int64_t shard = 0; shard < world().size(); ++shard) all.insert(shard);
      int calls = 0;
      rig.engine().before_update([&] { return ++calls; });
      for (std::int64_t step = 0; step < 2; ++step) rig.run_step(step, all);
      EXPECT_EQ(rig.engine().sums()[parallel::kSampleSum], 0);
      EXPECT_EQ(calls, 0);
      reference.expect_values(rig, name);
      reference.expect_states(rig, name);
    }
  }
}

// Plans of different batches may finish in other orders: here every rank in its own, rank 1 in reverse of rank 0.
TEST(GradientEngine, RanksMayFinishBucketsInDifferentOrders) {
  std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
  if (world().rank() % 2 == 1) std::ranges::reverse(order);
  std::rotate(order.begin(), order.begin() + world().rank() / 2, order.end());
  for (const auto& [name, domains] : groupings()) {
    for (const bool thread : {false, true}) {
      EngineCase c{.domains = domains, .shards = 3 * world().size(), .bucket_bytes = 1, .options = {.thread = thread}};
      EngineRig rig(c);
      EngineReference<float> reference(c);
      ASSERT_EQ(rig.store().buckets().size(), kParameters.size());
      for (std::int64_t step = 0; step < 3; ++step) {
        rig.run_step(step, {}, order);
        reference.run_step(step);
        reference.expect_values(rig, formatted("{}, thread {}, step {}", name, thread, step));
      }
    }
  }
}

TEST(GradientEngine, RanksInDifferentStepsAreTold) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  for (const auto& [name, domains] : groupings()) {
    for (const bool thread : {false, true}) {
      if (thread && domains.count() > 1) continue;  // sends that nobody receives are given up after a second each
      EngineRig rig({.domains = domains, .options = {.thread = thread}});
      const std::string error = error_of([&] {
        rig.engine().begin_step({.samples = world().is_root() ? 90u : 100u, .learning_rate = 0.1});
        rig.engine().sums_ready();
        rig.engine().zero_gradients();
        rig.engine().end_shard();
        rig.engine().finish_step();
      });
      rig.fail();
      // Some rank finds it; another may see first that this one has failed.
      int findings = 0;
      for (const std::string& said : world().allgather_strings(error)) {
        if (said.find("has failed") != std::string::npos) continue;
        ++findings;
        EXPECT_NE(said.find("the number of samples in the step differs"), std::string::npos) << name << ": " << said;
        EXPECT_NE(said.find("rank 0 has 90"), std::string::npos) << said;
      }
      EXPECT_GE(findings, 1) << name;
      world().barrier();
    }
  }
}

TEST(GradientEngine, RanksAgreeBetweenStepsAndResultsStay) {
  for (const auto& [name, domains] : groupings()) {
    for (const bool thread : {false, true}) {
      const EngineCase c{.domains = domains, .options = {.thread = thread, .late_updates = true}};
      EngineRig rig(c);
      EngineReference<float> reference(c);
      rig.engine().agree(1);
      for (std::int64_t step = 0; step < 3; ++step) {
        rig.run_step(step);
        reference.run_step(step);
        for (const std::uint64_t word : {2U, 3U}) rig.engine().agree(word);
        reference.expect_sums(rig, formatted("{}, thread {}, step {}", name, thread, step));
      }
      reference.expect_values(rig, formatted("{}, thread {}", name, thread));
    }
  }
}

// The last rank is between two steps, and the others say another word, or are in the next step.
TEST(GradientEngine, RanksThatDoNotAgreeAreTold) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const int last = world().size() - 1;
  for (const auto& [name, domains] : groupings()) {
    for (const bool thread : {false, true}) {
      for (const bool step : {false, true}) {
        if (step && thread && domains.count() > 1) continue;  // sends are given up after a second each
        EngineRig rig({.domains = domains, .options = {.thread = thread}});
        rig.run_step(0);
        const std::string error = error_of([&] {
          if (world().rank() == last)
            rig.engine().agree(7);
          else if (step)
            rig.run_step(1);
          else
            rig.engine().agree(8);
        });
        rig.fail();
        int findings = 0;
        for (const std::string& said : world().allgather_strings(error)) {
          if (said.find("has failed") != std::string::npos) continue;
          ++findings;
          EXPECT_NE(said.find("[ranks] the call between two steps differs: rank "), std::string::npos) << said;
          EXPECT_NE(said.find(formatted("rank {} has 7", last)), std::string::npos) << name << ": " << said;
          EXPECT_NE(said.find(step ? "has 0" : "has 8"), std::string::npos) << name << ": " << said;
        }
        EXPECT_GE(findings, 1) << name;
        world().barrier();
      }
    }
  }
}

TEST(GradientEngine, ARankThatFailsDoesNotLeaveItsDomainWaiting) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else waits";
  const int last = world().size() - 1;
  for (const bool thread : {false, true}) {
    EngineRig rig({.domains = one_domain().domains, .options = {.thread = thread}});
    rig.run_step(0);
    rig.engine().fence();  // all ranks have updated, and so none meets the failure in this step
    if (world().rank() == last) {
      rig.begin(1);
    } else {
      const std::string error = error_of([&] { rig.run_step(1); });
      EXPECT_NE(error.find(formatted("local rank {} of this node has failed", last)), std::string::npos) << error;
    }
    rig.fail();
    world().barrier();
  }
}

// Collective calls between steps, in which MPI alone would wait for the rank that does not come.
TEST(GradientEngine, ARankThatFailsBetweenStepsDoesNotLeaveItsDomainWaiting) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else waits";
  struct Call {
    const char* name;
    void (*make)(parallel::GradientEngine&);
  };
  const std::vector<Call> calls = {
      {"fence", [](parallel::GradientEngine& e) { e.fence(); }},
      {"gradients", [](parallel::GradientEngine& e) { e.collect_gradients(); }},
      {"checksums", [](parallel::GradientEngine& e) { (void)e.intact(); }},
      {"meet", [](parallel::GradientEngine& e) { e.meet(); }},
  };
  for (const Call& call : calls) {
    EngineRig rig({.domains = one_domain().domains, .options = {.guards = {.verify_every = 1}}});
    rig.run_step(0);
    rig.engine().fence();
    if (world().rank() == 0) {
      rig.fail();
    } else {
      const std::string error = error_of([&] { call.make(rig.engine()); });
      EXPECT_NE(error.find("local rank 0 of this node has failed"), std::string::npos) << call.name << ": " << error;
    }
    world().barrier();
    rig.fail();
    world().barrier();
  }
}

TEST(GradientEngine, ARankThatLeavesDoesNotLeaveItsDomainWaiting) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else waits";
  const int last = world().size() - 1;
  for (const bool thread : {false, true}) {
    for (const bool steps : {false, true}) {
      EngineRig rig({.domains = one_domain().domains, .options = {.thread = thread}});
      rig.run_step(0);
      rig.engine().fence();
      if (world().rank() == last) {
        rig.engine().leave();
      } else {
        const std::string error = error_of([&] { steps ? rig.run_step(1) : rig.engine().meet(); });
        EXPECT_NE(error.find(formatted("rank {} has left after update 1", last)), std::string::npos) << error;
      }
      world().barrier();
      rig.fail();
      world().barrier();
    }
  }
}

}  // namespace
}  // namespace lockstep::test
