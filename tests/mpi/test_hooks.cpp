// Hooks that reduce in place of the tree: they never wait for other ranks, several buckets may be under way, and what
// is not finite reaches all ranks.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "tests/mpi/engine_rig.h"

namespace lockstep::test {
namespace {

constexpr std::int64_t kElements = 8;
constexpr float kInfinite = std::numeric_limits<float>::infinity();

using Gradient = std::vector<float>;

Gradient zeros() { return Gradient(kElements); }

void finish(parallel::BucketHook& hook, int bucket) {
  for (Backoff wait; !hook.done(bucket);) wait.pause();
}

void reduce(parallel::BucketHook& hook, Gradient& gradient) {
  hook.start(0, gradient);
  finish(hook, 0);
}

// All ranks' numbers are whole, so any order of summation gives this.
TEST(MpiHook, SumsBucketsThatAreUnderWayTogether) {
  parallel::MpiAllreduceHook hook;
  const std::array<std::int64_t, 3> elements{50'000, 3, 700};
  hook.begin(world(), elements);
  std::vector<std::vector<double>> gradients;
  for (std::size_t b = 0; b < elements.size(); ++b) {
    std::vector<double>& gradient = gradients.emplace_back(static_cast<std::size_t>(elements[b]));
    std::iota(gradient.begin(), gradient.end(), 100.0 * world().rank());
    hook.start(static_cast<int>(b), gradient);
  }
  for (int b = 2; b >= 0; --b) finish(hook, b);
  const double size = world().size(), ranks = size * (size - 1) / 2;
  for (const std::vector<double>& gradient : gradients) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
      ASSERT_EQ(gradient[i], 100 * ranks + size * static_cast<double>(i)) << i;
  }
}

// With two ranks there is one order of summation. With more the bits are the MPI library's, but the same on all ranks.
TEST(MpiHook, AnEngineUpdatesByItsSums) {
  for (const bool thread : {false, true}) {
    parallel::MpiAllreduceHook hook;
    const EngineCase c{.domains = grouping("single ranks", [](int r) { return r; }).domains,
                       .options = {.thread = thread, .reduction = {.hook = &hook}}};
    EngineRig rig(c);
    EngineReference<float> reference(c);
    for (std::int64_t step = 0; step < 3; ++step) {
      rig.run_step(step);
      reference.run_step(step);
      const std::string what = formatted("thread {}, step {}", thread, step);
      reference.expect_sums(rig, what);
      if (world().size() <= 2) reference.expect_values(rig, what);
      for (std::size_t p = 0; p < kParameters.size(); ++p) {
        const Tensor mine = rig.store().read(formatted("p{}", p));
        std::vector<float> roots(mine.data<float>().begin(), mine.data<float>().end());
        world().broadcast(roots);
        expect_equal<float>(mine.data<float>(), roots, what);
        for (std::size_t i = 0; i < roots.size(); ++i) ASSERT_NEAR(roots[i], reference.values[p][i], 1e-4) << what;
      }
    }
  }
}

TEST(TopK, SendsTheLargestAndKeepsTheRest) {
  parallel::TopKHook hook(0.25);
  hook.begin(world(), std::array{kElements});
  Gradient gradient{1, -8, 3, 4, 5, 6, 7, 2};
  reduce(hook, gradient);
  const auto size = static_cast<float>(world().size());
  EXPECT_EQ(gradient, (Gradient{0, -8 * size, 0, 0, 0, 0, 7 * size, 0}));
  gradient = zeros();
  reduce(hook, gradient);
  EXPECT_EQ(gradient, (Gradient{0, 0, 0, 0, 5 * size, 6 * size, 0, 0}));
}

TEST(TopK, SendsMoreThanOneMessageCarries) {
  const std::int64_t three = 3 * 8 * world().size();  // bytes of three elements of each rank
  const comm::Communicator narrow = comm::Communicator::world({.message_limit = three});
  parallel::TopKHook hook(0.5);
  hook.begin(narrow, std::array{kElements});
  Gradient gradient{1, -8, 3, 4, 5, 6, 7, 2};
  reduce(hook, gradient);
  const auto size = static_cast<float>(world().size());
  EXPECT_EQ(gradient, (Gradient{0, -8 * size, 0, 0, 5 * size, 6 * size, 7 * size, 0}));
}

// Wherever it is and whatever stands beside it; and the step, which guards hold back, leaves nothing behind.
TEST(TopK, WhatIsNotFiniteReachesAllRanksAndIsNotKept) {
  parallel::TopKHook hook(1.0 / kElements);
  hook.begin(world(), std::array{kElements});
  for (const float bad : {kNan, kInfinite, -kInfinite}) {
    for (std::size_t at = 0; at < kElements; ++at) {
      Gradient gradient{8, 7, 6, 5, 4, 3, 2, 1};
      reduce(hook, gradient);
      gradient = {1, 2, 3, 4, 5, 6, 7, 8};
      if (world().rank() == world().size() - 1) gradient[at] = bad;
      reduce(hook, gradient);
      EXPECT_FALSE(std::isfinite(gradient[at])) << bad << " at " << at;
      for (std::int64_t step = 0; step < kElements; ++step) {  // until nothing is kept
        gradient = zeros();
        reduce(hook, gradient);
        EXPECT_TRUE(std::ranges::all_of(gradient, [](float v) { return std::isfinite(v); })) << bad << " at " << at;
      }
    }
  }
}

TEST(TopK, ARefusedStepLeavesWhatWasKeptBefore) {
  parallel::TopKHook hook(0.25);
  hook.begin(world(), std::array{kElements});
  Gradient gradient{8, 7, 6, 5, 0, 0, 0, 0};
  reduce(hook, gradient);
  gradient = {9, 1, 1, 1, 1, 1, 1, 9};
  reduce(hook, gradient);
  hook.refused();
  gradient = zeros();
  reduce(hook, gradient);
  const auto size = static_cast<float>(world().size());
  EXPECT_EQ(gradient, (Gradient{0, 0, 6 * size, 5 * size, 0, 0, 0, 0}));
}

TEST(TopK, AGradientOfNothingButNaNsIsNotKeptEither) {
  parallel::TopKHook hook(0.25);
  hook.begin(world(), std::array{kElements});
  Gradient gradient{8, 7, 6, 5, 0, 0, 0, 0};
  reduce(hook, gradient);
  gradient.assign(kElements, kNan);
  reduce(hook, gradient);
  EXPECT_TRUE(std::ranges::any_of(gradient, [](float v) { return std::isnan(v); }));
  gradient = zeros();
  reduce(hook, gradient);
  const auto size = static_cast<float>(world().size());
  EXPECT_EQ(gradient, (Gradient{0, 0, 6 * size, 5 * size, 0, 0, 0, 0})) << "what was kept before is sent after";
}

void expect_equal_engines(EngineRig& got, EngineRig& expected, const std::string& what) {
  for (EngineRig* rig : {&got, &expected}) rig->engine().settle();
  for (std::size_t p = 0; p < kParameters.size(); ++p) {
    const std::string name = formatted("p{}", p);
    const Tensor value = got.store().read(name), state = got.store().read_state(name, 0);
    const Tensor wanted = expected.store().read(name), wanted_state = expected.store().read_state(name, 0);
    expect_equal<float>(value.data<float>(), wanted.data<float>(), formatted("{}, values of {}", what, name));
    expect_equal<float>(state.data<float>(), wanted_state.data<float>(), formatted("{}, state of {}", what, name));
  }
}

// Nor does it change what a hook keeps for later, or the weights of ranks that average them every second step.
TEST(Hooks, AStepWithoutSamplesChangesNothing) {
  std::set<std::int64_t> all;
  for (std::int64_t shard = 0; shard < world().size(); ++shard) all.insert(shard);
  const auto engine_case = [](parallel::BucketHook& hook) {
    return EngineCase{.domains = grouping("single ranks", [](int r) { return r; }).domains,
                      .options = {.local_steps = 2, .reduction = {.hook = &hook}}};
  };
  parallel::TopKHook largest(0.1), usual_largest(0.1);
  parallel::LocalHook local, usual_local;
  for (const bool averages : {false, true}) {
    EngineRig rig(averages ? engine_case(local) : engine_case(largest)),
        usual(averages ? engine_case(usual_local) : engine_case(usual_largest));
    for (std::int64_t step = 0; step < 4; ++step) {
      const std::string what = formatted("averages {}, step {}", averages, step);
      rig.run_step(step, all);
      expect_equal_engines(rig, usual, what + " without samples");
      rig.run_step(step);
      usual.run_step(step);
      expect_equal_engines(rig, usual, what);
    }
  }
}

// Tells that it has begun with a bucket.
template <class Hook>
class Noted : public Hook {
 public:
  using Hook::Hook;
  using Hook::start;
  void start(int bucket, std::span<float> gradient) override {
    begun = true;
    Hook::start(bucket, gradient);
  }
  std::atomic<bool> begun{false};
};

// Rank 0 has started what the others never will, and gives up: its engine ends, though nobody answers.
template <class Hook>
void check_teardown(Noted<Hook>& hook, bool thread) {
  EngineCase c{.domains = grouping("single ranks", [](int r) { return r; }).domains,
               .options = {.thread = thread, .reduction = {.hook = &hook}}};
  auto rig = std::make_unique<EngineRig>(c);
  if (world().is_root()) {
    rig->begin(0);
    rig->engine().sums_ready();
    rig->engine().zero_gradients();
    rig->engine().end_shard();
    for (Backoff wait; !hook.begun; wait.pause()) rig->engine().poll();
    rig->fail();
    rig.reset();
  }
  world().barrier();
  if (rig) rig->fail();
}

TEST(Hooks, ARankThatGivesUpDoesNotWaitForTheOthers) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else to wait for";
  for (const bool thread : {false, true}) {
    Noted<parallel::MpiAllreduceHook> sums;
    check_teardown(sums, thread);
    Noted<parallel::TopKHook> largest(0.1);
    check_teardown(largest, thread);
  }
}

}  // namespace
}  // namespace lockstep::test
