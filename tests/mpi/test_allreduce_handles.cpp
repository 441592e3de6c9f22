// Reductions that are under way while the caller goes on: several at once, of different sizes, types and kinds, waited
// for in any order; reduce_scatter with uneven parts; what is left of a handle that is destroyed; calls that differ,
// and ranks that leave.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/parallel/exchange/allreduce.h"
#include "tests/mpi/captured_log.h"
#include "tests/mpi/harness.h"
#include "tests/mpi/tree_values.h"

namespace lockstep::test {
namespace {

using comm::ReduceOp;

// In chunks so short that the sizes below need several.
constexpr std::int64_t kChunk = 16 << 10;

// Every way that the ranks of the test can be grouped, the last path being MPI's.
std::vector<parallel::AllreduceOptions> own_paths() {
  std::vector<parallel::AllreduceOptions> all{{.path = parallel::AllreducePath::Shared, .chunk_bytes = kChunk},
                                              {.path = parallel::AllreducePath::Messages, .chunk_bytes = kChunk}};
  for (const bool dealt : {false, true}) {
    if (world().size() > 2)
      all.push_back({.path = parallel::AllreducePath::Hierarchical,
                     .domains = domains_of(world(), 2, dealt),
                     .chunk_bytes = kChunk});
  }
  return all;
}

// Numbers of this rank, from element `shift` on, and what comes out of them.
template <class T>
struct Numbers {
  std::vector<T> in, out, want;
  ReduceOp op = ReduceOp::Sum;

  Numbers(std::int64_t n, std::int64_t shift, ReduceOp operation = ReduceOp::Sum) : op(operation) {
    for (std::int64_t i = 0; i < n; ++i) {
      in.push_back(value_of<T>(world().rank(), shift + i));
      want.push_back(expected<T>(op, world().size(), shift + i));
    }
    out.resize(in.size());
  }
  parallel::Handle start(parallel::Allreduce& engine) { return engine.iallreduce(in, out, op); }
  void check(const std::string& what) const { EXPECT_TRUE(same_bits<T>(out, want)) << what; }
};

// More than there are places for calls; long ones in several chunks between short ones.
TEST(Handles, SeveralReductionsAreUnderWayAtOnce) {
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    for (const bool backwards : {false, true}) {
      std::deque<Numbers<float>> singles;
      std::deque<Numbers<double>> doubles;
      std::deque<Numbers<BFloat16>> narrow;
      std::vector<parallel::Handle> handles;
      for (const std::int64_t n : {3, 20'001, 0, 700, 9000, 1, 30'003}) {
        handles.push_back(singles.emplace_back(n, n).start(engine));
        handles.push_back(doubles.emplace_back(n, 7 + n, ReduceOp::Max).start(engine));
        handles.push_back(narrow.emplace_back(n, 11 + n).start(engine));
      }
      for (std::size_t i = 0; i < handles.size(); ++i) handles[backwards ? handles.size() - 1 - i : i].wait();
      const std::string what = fmt::format("path {}, backwards {}", name_of(engine.path()), backwards);
      for (const auto& numbers : singles) numbers.check(what);
      for (const auto& numbers : doubles) numbers.check(what);
      for (const auto& numbers : narrow) numbers.check(what);
    }
  }
}

TEST(Handles, ReductionsInTheWindowAreUnderWayBesideOthers) {
  parallel::Allreduce engine(world(), {.path = parallel::AllreducePath::Shared, .chunk_bytes = kChunk});
  constexpr std::size_t kCount = 20'000;
  const std::span<std::byte> bytes = engine.allocate(kCount * sizeof(float));
  const std::span<float> window(reinterpret_cast<float*>(bytes.data()), kCount);
  for (int round = 0; round < 3; ++round) {
    Numbers<float> staged(9001, round), direct(kCount, 5 + round), small(5, 3);
    std::ranges::copy(direct.in, window.begin());
    parallel::Handle first = staged.start(engine), second = engine.iallreduce(window, ReduceOp::Sum),
                     third = small.start(engine);
    third.wait();
    second.wait();
    first.wait();
    staged.check("staged");
    small.check("small");
    EXPECT_TRUE(same_bits<float>(window, direct.want));
  }
}

TEST(Handles, TestDrivesAndComesToAnEnd) {
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    Numbers<double> numbers(40'000, 1);
    parallel::Handle handle = numbers.start(engine);
    while (!handle.test()) std::this_thread::yield();
    EXPECT_FALSE(handle.active());
    EXPECT_TRUE(handle.test());
    handle.wait();  // of nothing
    numbers.check("driven by test()");
  }
}

TEST(Handles, MayBeMoved) {
  parallel::Allreduce engine(world());
  Numbers<float> a(5000, 1), b(6000, 2);
  parallel::Handle first = a.start(engine), second = b.start(engine);
  parallel::Handle third = std::move(first);
  EXPECT_FALSE(first.active());  // NOLINT(bugprone-use-after-move): a handle that was moved is not active
  first = std::move(second);
  third.wait();
  first.wait();
  a.check("moved by construction");
  b.check("moved by assignment");
}

// --- reduce_scatter

// By rank: alike, in steps, nothing for some, all for one.
std::vector<std::vector<std::int64_t>> all_parts(std::int64_t n) {
  const auto size = static_cast<std::size_t>(world().size());
  std::vector<std::vector<std::int64_t>> all(4, std::vector<std::int64_t>(size));
  for (std::size_t r = 0; r < size; ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    all[0][r] = part_of(n, world().size(), rank).size();
    all[1][r] = rank + 1 < world().size() ? std::min(n / world().size(), 7 * rank) : 0;
    all[2][r] = r == 0 || world().size() == 1 ? n : 0;
    all[3][r] = r % 2 == 0 ? part_of(n, (world().size() + 1) / 2, rank / 2).size() : 0;
  }
  all[1].back() = n - std::accumulate(all[1].begin(), all[1].end() - 1, std::int64_t{0});
  return all;
}

template <class T>
void check_scattered(parallel::Allreduce& engine, std::span<std::byte> bytes, std::int64_t n, ReduceOp op) {
  const auto rank = static_cast<std::size_t>(world().rank());
  for (const std::vector<std::int64_t>& counts : all_parts(n)) {
    const auto begin =
        static_cast<std::size_t>(std::accumulate(counts.begin(), counts.begin() + world().rank(), std::int64_t{0}));
    const auto count = static_cast<std::size_t>(counts[rank]);
    Numbers<T> numbers(n, 3, op);
    const auto want = std::span<const T>(numbers.want).subspan(begin, count);
    const std::string what = fmt::format("path {}, {} of {} {}, parts {}", name_of(engine.path()), name_of(op), n,
                                         comm::name_of(comm::element_of<T>()), fmt::join(counts, " "));
    std::vector<T> part(count);
    engine.reduce_scatter(numbers.in, part, counts, op);
    EXPECT_TRUE(same_bits<T>(part, want)) << what;
    const std::span<T> window(reinterpret_cast<T*>(bytes.data()), static_cast<std::size_t>(n));
    std::ranges::copy(numbers.in, window.begin());
    std::ranges::fill(part, T{});
    engine.reduce_scatter(window, part, counts, op);
    EXPECT_TRUE(same_bits<T>(part, want)) << what << ", from the window";
    const std::span<T> in_place = std::span(numbers.in).subspan(begin, count);
    engine.reduce_scatter(numbers.in, in_place, counts, op);
    EXPECT_TRUE(same_bits<T>(in_place, want)) << what << ", in place";
  }
}

TEST(ReduceScatter, IsTheRanksPartOfTheTree) {
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    const std::span<std::byte> window = engine.allocate(50'007 * sizeof(double));
    for (const std::int64_t n : {0, 1, 1000, 1025, 50'007}) {
      check_scattered<float>(engine, window, n, ReduceOp::Sum);
      check_scattered<double>(engine, window, n, ReduceOp::Sum);
      check_scattered<BFloat16>(engine, window, n, ReduceOp::Sum);
      check_scattered<std::int32_t>(engine, window, n, ReduceOp::Min);
    }
  }
}

TEST(ReduceScatter, SeveralAreUnderWayBesideAllreduces) {
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    constexpr std::int64_t kCount = 30'000;
    std::deque<Numbers<float>> whole, scattered;
    std::deque<std::vector<float>> parts;
    std::vector<parallel::Handle> handles;
    const std::vector<std::int64_t> counts = all_parts(kCount)[0];
    const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(world().rank())]);
    for (int i = 0; i < 5; ++i) {
      handles.push_back(whole.emplace_back(9000 + i, i).start(engine));
      handles.push_back(engine.ireduce_scatter(scattered.emplace_back(kCount, 50 * i).in, parts.emplace_back(count),
                                               counts, ReduceOp::Sum));
    }
    for (parallel::Handle& handle : handles) handle.wait();
    const auto begin = static_cast<std::size_t>(part_of(kCount, world().size(), world().rank()).begin);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      whole[i].check("beside reduce_scatter");
      EXPECT_TRUE(same_bits<float>(parts[i], std::span<const float>(scattered[i].want).subspan(begin, count)));
    }
  }
}

// --- through MPI alone. Whole numbers, so that any order of summation gives the same.

TEST(MpiPath, ReducesWithoutWaiting) {
  parallel::Allreduce engine(world(), {.path = parallel::AllreducePath::Mpi});
  const int size = world().size(), ranks = size * (size - 1) / 2;
  std::vector<double> a(10'000), b(3);
  std::vector<BFloat16> narrow(100, BFloat16(1.0F));
  std::iota(a.begin(), a.end(), world().rank());
  std::vector<double> sum(a.size());
  parallel::Handle first = engine.iallreduce(a, sum, ReduceOp::Sum), second = engine.iallreduce(b, ReduceOp::Max),
                   third = engine.iallreduce(narrow, ReduceOp::Sum);
  const std::vector<std::int64_t> counts = all_parts(10'000)[1];
  const auto rank = static_cast<std::size_t>(world().rank());
  const auto begin = std::accumulate(counts.begin(), counts.begin() + world().rank(), std::int64_t{0});
  std::vector<double> part(static_cast<std::size_t>(counts[rank]));
  parallel::Handle fourth = engine.ireduce_scatter(a, part, counts, ReduceOp::Sum);
  fourth.wait();
  third.wait();
  second.wait();
  first.wait();
  for (std::size_t i = 0; i < sum.size(); ++i)
    ASSERT_EQ(sum[i], static_cast<double>(size * static_cast<int>(i) + ranks));
  for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], sum[i + static_cast<std::size_t>(begin)]);
  EXPECT_EQ(static_cast<float>(narrow[7]), static_cast<float>(size));
  EXPECT_EQ(a[5], 5.0 + world().rank()) << "the input was changed";
}

TEST(MpiPath, AnEngineWaitsForReductionsThatNobodyWaitedFor) {
  std::optional<parallel::Allreduce> engine(std::in_place, world(),
                                            parallel::AllreduceOptions{.path = parallel::AllreducePath::Mpi});
  const int size = world().size();
  std::vector<double> a(100'000, world().rank()), sum(a.size()), part(a.size());
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size));
  counts[0] = static_cast<std::int64_t>(a.size());
  part.resize(world().is_root() ? a.size() : 0);
  parallel::Handle whole = engine->iallreduce(a, sum, ReduceOp::Sum),
                   scattered = engine->ireduce_scatter(a, part, counts, ReduceOp::Sum);
  engine.reset();
  for (const double value : sum) ASSERT_EQ(value, size * (size - 1) / 2);
  for (const double value : part) ASSERT_EQ(value, size * (size - 1) / 2);
  EXPECT_TRUE(whole.test());
  scattered.wait();
}

// The other ranks never make the call.
TEST(MpiPath, MemoryThatMpiMayStillUseIsNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  for (const bool poisoned : {false, true}) {
    const comm::Communicator own = comm::Communicator::world();  // whose relatives know of what is given up
    const CapturedLog log;
    parallel::Allreduce engine(own, {.path = parallel::AllreducePath::Mpi});
    const std::span<std::byte> bytes = engine.allocate(1000 * sizeof(double));
    const std::span<double> data(reinterpret_cast<double*>(bytes.data()), 1000);
    if (world().is_root()) {
      const std::string error = error_of([&] {
        parallel::Handle lost = engine.iallreduce(data, ReduceOp::Sum);
        if (!poisoned) fail("test", "in between");
        own.poison("in between");
        lost.wait();
      });
      expect_contains(error, "in between");
      expect_contains(log.text(), "[allreduce] rank 0: MPI may still read and write the memory of a failed call: ");
    }
    world().barrier();
  }
}

// --- errors

std::string agreed_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const comm::AgreedError& error) {
    return error.what();
  }
  return "";
}

TEST(Handles, CallsThatDifferAreNamedByTheirHandleAloneAndTheNextGoOn) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    Numbers<float> before(9000, 1), after(9001, 2);
    std::vector<float> data(5001);
    const std::int64_t n = world().is_root() ? 5000 : 5001;
    parallel::Handle first = before.start(engine),
                     wrong = engine.iallreduce(comm::Buffer(data).part(0, n), ReduceOp::Sum),
                     last = after.start(engine);
    const std::string error = agreed_error_of([&] { wrong.wait(); });
    EXPECT_NE(error.find("calls for sum of 5001 f32, rank 0 for sum of 5000 f32"), std::string::npos) << error;
    for (const std::string& other : world().allgather_strings(error)) EXPECT_EQ(other, error) << "alike on all ranks";
    EXPECT_FALSE(wrong.active());
    first.wait();
    last.wait();
    before.check("before the wrong call");
    after.check("after the wrong call");
  }
}

TEST(ReduceScatter, PartsThatAreWrongOrDifferAreNamedOnAllRanks) {
  const int size = world().size(), last = size - 1;
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    std::vector<float> in(static_cast<std::size_t>(1000 * size)), out(1000);
    const std::vector<std::int64_t> right(static_cast<std::size_t>(size), 1000);
    const auto error = [&](std::vector<std::int64_t> counts) {
      const std::vector<std::int64_t>& mine = world().rank() == last ? counts : right;
      return agreed_error_of([&] { engine.reduce_scatter(in, out, mine, ReduceOp::Sum); });
    };
    std::vector<std::int64_t> more = right, fewer = right, negative = right;
    more.push_back(0);
    fewer[0] = 999;
    negative[0] = -1;
    EXPECT_EQ(error(more), fmt::format("[allreduce] rank {}: {} parts for {} ranks", last, size + 1, size));
    EXPECT_EQ(error(fewer), fmt::format("[allreduce] rank {}: parts of {} elements together, the input has {}", last,
                                        1000 * size - 1, 1000 * size));
    EXPECT_EQ(error(negative), fmt::format("[allreduce] rank {}: a part of -1 elements, expected 0 or more", last));
    if (size > 2) {
      std::vector<std::int64_t> shifted = right;
      shifted[0] += 10;
      shifted[1] -= 10;
      EXPECT_NE(error(shifted).find(fmt::format("rank {} calls for sum of {} f32 in parts", last, 1000 * size)),
                std::string::npos);
    }
    engine.reduce_scatter(in, out, right, ReduceOp::Sum);
  }
}

// --- the end of handles and engines

TEST(Handles, ADestroyedHandleWaits) {
  for (const parallel::AllreduceOptions& options : own_paths()) {
    parallel::Allreduce engine(world(), options);
    Numbers<float> numbers(30'000, 1);
    { const parallel::Handle dropped = numbers.start(engine); }
    numbers.check("dropped");
  }
}

TEST(Handles, AnExceptionDoesNotWaitAndEndsTheEngine) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  parallel::Allreduce engine(world(), {.path = parallel::AllreducePath::Shared, .chunk_bytes = kChunk});
  Numbers<float> numbers(30'000, 1);
  const int last = world().size() - 1;
  if (world().rank() == last) {
    EXPECT_THROW(
        {
          const parallel::Handle lost = numbers.start(engine);
          throw std::runtime_error("in between");
        },
        std::runtime_error);
    EXPECT_NE(
        error_of([&] { engine.allreduce(numbers.in, ReduceOp::Sum); }).find("cannot be used after an earlier failure"),
        std::string::npos);
  } else {
    // Of three ranks one may see the failure of the other that has given up, rather than that of the last rank.
    const std::string error = error_of([&] { numbers.start(engine).wait(); });
    EXPECT_NE(error.find("of this node has failed"), std::string::npos) << error;
    EXPECT_EQ(error.find(fmt::format("local rank {} ", world().rank())), std::string::npos) << error;
  }
  world().barrier();
}

TEST(Handles, ARankThatLeavesIsNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  const int last = world().size() - 1;
  std::optional<parallel::Allreduce> engine(std::in_place, world(),
                                            parallel::AllreduceOptions{.path = parallel::AllreducePath::Shared});
  for (const std::int64_t n : {3, 20'000}) {
    Numbers<float> numbers(n, 1);
    numbers.start(*engine).wait();
  }
  if (world().rank() == last) {
    engine.reset();
  } else {
    Numbers<float> numbers(20'000, 1);
    const std::string error = error_of([&] { numbers.start(*engine).wait(); });
    EXPECT_NE(error.find(fmt::format("rank {} has left after call 2", last)), std::string::npos) << error;
    engine.reset();
  }
  world().barrier();
}

TEST(Handles, AnEngineThatIsDestroyedBeforeItsHandlesIsNamedToOtherRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  std::optional<parallel::Allreduce> engine(
      std::in_place, world(),
      parallel::AllreduceOptions{.path = parallel::AllreducePath::Shared, .chunk_bytes = kChunk});
  Numbers<float> first(3, 1), numbers(30'000, 1);
  first.start(*engine).wait();
  world().barrier();
  parallel::Handle handle = numbers.start(*engine);
  const int last = world().size() - 1;
  if (world().rank() == last) engine.reset();
  const std::string error = error_of([&] { handle.wait(); });
  if (world().rank() == last) {
    EXPECT_NE(error.find("was destroyed before the reduction was complete; wait for every handle before"),
              std::string::npos)
        << error;
  } else if (error.find("has failed") == std::string::npos) {  // another rank that has seen it first
    EXPECT_NE(error.find(fmt::format("rank {} has left after call 1, while later calls were not complete", last)),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("waits for all its handles before it destroys the engine"), std::string::npos) << error;
  }
  engine.reset();
  world().barrier();
}

// Destroyed at the end of the program, after MPI.
std::vector<parallel::Handle> forgotten;

TEST(Handles, AForgottenHandleMayOutliveEngineAndMpi) {
  std::vector<parallel::AllreduceOptions> all = own_paths();
  all.push_back({.path = parallel::AllreducePath::Mpi});
  static std::deque<Numbers<double>> numbers;
  for (const parallel::AllreduceOptions& options : all) {
    parallel::Allreduce engine(world(), options);
    forgotten.push_back(numbers.emplace_back(50'000, 1).start(engine));
  }
  world().barrier();
}

TEST(Handles, AHandleThatOutlivesItsEngineIsToldSo) {
  if (world().size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  std::optional<parallel::Allreduce> engine(std::in_place, world(),
                                            parallel::AllreduceOptions{.path = parallel::AllreducePath::Messages});
  Numbers<float> numbers(30'000, 1);
  parallel::Handle handle = numbers.start(*engine);
  engine.reset();
  EXPECT_NE(error_of([&] { handle.wait(); }).find("was destroyed before the reduction was complete"),
            std::string::npos);
  EXPECT_FALSE(handle.active());
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
