// GradientEngine with guards and with a function before the update, in every grouping of ranks into domains: all ranks
// find the same, and a step, a repair and a factor are those of all ranks.
#include <gtest/gtest.h>

#include "tests/mpi/engine_rig.h"

namespace lockstep::test {
namespace {

// A rank that is alone in its domain counts copies as the others do.
TEST(EngineGuards, CopiesThatAreAlikeAreFoundAlikeByAllRanks) {
  for (const auto& [name, domains] : groupings()) {
    for (const bool share : {true, false}) {
      EngineRig rig({.domains = domains, .share = share, .options = {.guards = {.compare_every = 1}}});
      for (std::int64_t step = 0; step < 3; ++step) {
        rig.run_step(step);
        EXPECT_EQ(rig.engine().verdict(), parallel::StepVerdict::Apply)
            << name << ", share " << share << ", step " << step;
      }
      rig.engine().fence();
    }
  }
}

// One copy of two is damaged. Plans compute constants once per version of the values, also on the ranks that only share
// what another rank has repaired.
TEST(EngineGuards, ARepairChangesTheVersionOfTheValuesOnAllRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one copy";
  for (const auto& [name, domains] : groupings()) {
    if (domains.count() == 1) continue;
    const EngineCase c{.domains = domains, .options = {.guards = {.verify_every = 1}}};
    EngineRig rig(c);
    EngineReference<float> reference(c);
    rig.run_step(0);
    reference.run_step(0);
    rig.engine().fence();
    if (world().is_root()) rig.store().buckets()[0].values[2] ^= std::byte{4};
    rig.engine().fence();
    const std::uint64_t before = rig.store().version();
    EXPECT_EQ(rig.engine().examine(true).size(), 1U) << name;
    EXPECT_GT(rig.store().version(), before) << name;
    reference.expect_values(rig, name);
    rig.engine().fence();
  }
}

// The function waits for other ranks, which drives the step.
TEST(BeforeUpdate, AFunctionThatReadsTheGradientHasItsFactorApplied) {
  for (const auto& [name, domains] : groupings()) {
    const EngineCase c{.domains = domains, .shards = 9, .options = {.shard_optimizer = domains.count() > 1}};
    EngineRig rig(c);
    EngineReference<float> reference(c);
    rig.engine().before_update([&rig] {
      rig.engine().collect_gradients();
      return 0.25;
    });
    for (std::int64_t step = 0; step < 2; ++step) {
      rig.run_step(step);
      reference.run_step(step, {}, 0.25);
      const std::string what = formatted("{}, step {}", name, step);
      reference.expect_gradients(rig, what);
      reference.expect_values(rig, what);
      rig.engine().fence();
    }
  }
}

}  // namespace
}  // namespace lockstep::test
