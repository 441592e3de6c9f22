// The public allreduce: every path, type and operation, in place and not, memory of the window and any other, short and
// long, over all ranks, parts of them, and nodes made by hand, against the reduction tree written down plainly, bit for
// bit; and against MPI's own allreduce where any order gives the same.
#include "lockstep/parallel/exchange/allreduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/mpi/harness.h"
#include "tests/mpi/tree_values.h"

namespace lockstep::test {
namespace {

using comm::Communicator, comm::ReduceOp;

constexpr std::array kOps{ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max};

// One rank's values and what all ranks' give, by operation; of the first n elements the same for every n.
template <class T>
struct Reference {
  std::vector<T> values;
  std::array<std::vector<T>, kOps.size()> results;

  Reference(const Communicator& comm, std::int64_t n) : values(static_cast<std::size_t>(n)) {
    for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = value_of<T>(comm.rank(), i);
    for (const ReduceOp op : kOps) {
      for (std::int64_t i = 0; i < n; ++i) of(op).push_back(expected<T>(op, comm.size(), i));
    }
  }
  std::vector<T>& of(ReduceOp op) { return results[static_cast<std::size_t>(op)]; }
};

template <class T>
std::span<T> as(std::span<std::byte> bytes, std::int64_t count) {
  return {reinterpret_cast<T*>(bytes.data()), static_cast<std::size_t>(count)};
}

template <class T>
class AllreduceOf : public testing::Test {
 protected:
  // In chunks so short that the sizes below need several, and slots are used again.
  static constexpr std::int64_t kChunk = 4 << 10;
  static inline const std::vector<std::int64_t> kSizes{0, 1, 3, 1023, 2049, 5003, 17'501};

  static void check(const Communicator& comm, const parallel::AllreduceOptions& options) {
    parallel::Allreduce engine(comm, options);
    const auto bytes = static_cast<std::size_t>(kSizes.back()) * sizeof(T);
    const std::span<std::byte> window = engine.allocate(bytes), other = engine.allocate(bytes);
    std::vector<T> own(static_cast<std::size_t>(kSizes.back())), out(own.size());
    static Reference<T> reference(comm, kSizes.back());  // the same in all calls, which are of all ranks
    for (const std::int64_t n : kSizes) {
      for (const ReduceOp op : kOps) {
        SCOPED_TRACE(formatted("path {}, {} ranks in {} domains, {} of {}", name_of(engine.path()), comm.size(),
                               options.domains ? options.domains->count() : 0, name_of(op), n));
        const auto count = static_cast<std::size_t>(n);
        const auto values = std::span<const T>(reference.values).first(count);
        const auto want = std::span<const T>(reference.of(op)).first(count);
        const auto try_it = [&](std::span<T> in, std::span<T> result) {
          std::ranges::copy(values, in.begin());
          engine.allreduce(in, result, op);
          EXPECT_TRUE(same_bits<T>(result, want));
          EXPECT_TRUE(in.data() == result.data() || same_bits<T>(in, values)) << "the input was changed";
        };
        const auto o = std::span(own).first(count), r = std::span(out).first(count);
        const std::span<T> w = as<T>(window, n), v = as<T>(other, n);
        for (const auto& [in, result] :
             {std::pair(o, o), std::pair(o, r), std::pair(w, w), std::pair(w, v), std::pair(w, r), std::pair(o, w)}) {
          try_it(in, result);
        }
        comm.rank() % 2 == 0 ? try_it(w, w) : try_it(o, r);  // ranks may differ in where their memory lies
        if (testing::Test::HasFailure()) return;
      }
    }
  }
};

using Reduced = testing::Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, Float16, BFloat16, std::uint32_t,
                               std::int32_t, float, std::uint64_t, std::int64_t, double>;
TYPED_TEST_SUITE(AllreduceOf, Reduced);

TYPED_TEST(AllreduceOf, WindowIsTheTree) {
  this->check(world(), {.path = parallel::AllreducePath::Shared, .chunk_bytes = this->kChunk});
}

TYPED_TEST(AllreduceOf, MessagesAreTheTree) {
  this->check(world(), {.path = parallel::AllreducePath::Messages, .chunk_bytes = this->kChunk});
}

TYPED_TEST(AllreduceOf, NodesAreTheTree) {
  for (const int per : {2, 3}) {
    for (const bool dealt : {false, true}) {
      if (world().size() > per)
        this->check(world(), {.path = parallel::AllreducePath::Hierarchical,
                              .domains = domains_of(world(), per, dealt),
                              .chunk_bytes = this->kChunk});
    }
  }
}

// Several engines of groups at once, and of one with the ranks in reverse.
TEST(Allreduce, GroupsReduceByThemselves) {
  const int rank = world().rank(), size = world().size();
  const Communicator halves = world().split(rank % 2, -rank);
  parallel::Allreduce all(world()), half(halves);
  std::vector<std::int64_t> values(3000), sums(3000);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = rank + static_cast<std::int64_t>(i) + round;
    half.allreduce(values, sums, ReduceOp::Sum);
    all.allreduce(sums, ReduceOp::Max);
    std::array<std::int64_t, 2> of_half{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      of_half = {};
      for (int r = 0; r < size; ++r)
        of_half[static_cast<std::size_t>(r % 2)] += r + static_cast<std::int64_t>(i) + round;
      ASSERT_EQ(sums[i], std::ranges::max(of_half)) << i;
    }
  }
}

TEST(Allreduce, MpiGivesTheSameOfNumbersWhoseSumsAreExact) {
  parallel::Allreduce own(world()), mpi(world(), {.path = parallel::AllreducePath::Mpi});
  EXPECT_EQ(mpi.path(), parallel::AllreducePath::Mpi);
  for (const ReduceOp op : kOps) {
    std::vector<float> a(10'001), b;
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = std::ldexp(1.0F, static_cast<int>((i + static_cast<std::size_t>(world().rank())) % 5));
    b = a;
    own.allreduce(a, op);
    mpi.allreduce(b, op);
    EXPECT_EQ(a, b) << name_of(op);
  }
}

std::string refusal_of(parallel::Allreduce& engine, comm::ConstBuffer in, comm::Buffer out, ReduceOp op) {
  try {
    engine.allreduce(in, out, op);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Allreduce, CallsThatDifferOrAreWrongAreNamedOnAllRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const int last = world().size() - 1;
  const bool odd_one = world().rank() == last;
  for (const parallel::AllreducePath path : {parallel::AllreducePath::Shared, parallel::AllreducePath::Messages}) {
    for (const std::int64_t n : {10, 5000}) {
      std::vector<float> data(static_cast<std::size_t>(n) + 1), other(data.size());
      const auto text = [&](auto&& call) {
        parallel::Allreduce engine(world(), {.path = path});
        return refusal_of(engine, call.first, call.second, ReduceOp::Sum);
      };
      const comm::Buffer whole(data);
      const comm::Buffer counted = whole.part(0, odd_one ? n + 1 : n);
      EXPECT_EQ(text(std::pair(counted, counted)),
                formatted("[allreduce] rank {} calls for sum of {} f32, rank 0 for sum of {} f32", last, n + 1, n));
      const comm::Buffer into = comm::Buffer(other).part(0, odd_one ? n - 1 : n);
      EXPECT_EQ(text(std::pair(whole.part(0, n), into)),
                formatted("[allreduce] rank {}: {} f32 do not fit into {} f32", last, n, n - 1));
      EXPECT_EQ(text(std::pair(whole.part(0, n), odd_one ? whole.part(1, n) : whole.part(0, n))),
                formatted("[allreduce] rank {}: input and output of {} bytes overlap by {}", last, 4 * n, 4 * (n - 1)));
    }
  }
}

TEST(Allreduce, ANullPointerIsRefusedOnAllRanks) {
  for (const parallel::AllreducePath path :
       {parallel::AllreducePath::Shared, parallel::AllreducePath::Messages, parallel::AllreducePath::Mpi}) {
    parallel::Allreduce engine(world(), {.path = path});
    const bool alike = path == parallel::AllreducePath::Mpi;  // which looks at this rank's call alone
    std::vector<float> data(5000);
    const comm::Buffer wrong(nullptr, 5000, comm::Element::F32), right(data);
    const bool mine = alike || world().rank() == world().size() - 1;
    EXPECT_NE(refusal_of(engine, mine ? wrong : right, right, ReduceOp::Sum).find("5000 f32 at a null pointer"),
              std::string::npos);
  }
}

TEST(Allreduce, EnginesThatDifferAreRefused) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const std::int64_t chunk = world().is_root() ? 4096 : 8192;
  EXPECT_NE(error_of([&] {
              parallel::Allreduce(world(), {.chunk_bytes = chunk});
            }).find("the path and the chunk of an allreduce"),
            std::string::npos);
}

TEST(Allreduce, GoesOnInANodeAfterARefusedCall) {
  parallel::Allreduce engine(world(), {.path = parallel::AllreducePath::Shared});
  std::vector<std::int32_t> data(2000, 1);
  if (world().size() > 1) {
    const auto op = world().is_root() ? ReduceOp::Sum : ReduceOp::Max;
    EXPECT_NE(refusal_of(engine, data, data, op).find("rank 1 calls for max of 2000 i32"), std::string::npos);
  }
  engine.allreduce(data, ReduceOp::Sum);
  EXPECT_EQ(data, std::vector<std::int32_t>(2000, world().size()));
}

// In the long tier alone: it takes 5 GiB of memory.
TEST(Allreduce, PastTwoToThe31Bytes) {
  if (std::getenv("LOCKSTEP_LONG_TESTS") == nullptr) GTEST_SKIP() << "LOCKSTEP_LONG_TESTS is not set";
  const auto n = (std::size_t{1} << 31) + 12'345;
  for (const parallel::AllreducePath path : {parallel::AllreducePath::Shared, parallel::AllreducePath::Messages}) {
    parallel::Allreduce engine(world(), {.path = path});
    std::span<std::uint8_t> data = as<std::uint8_t>(engine.allocate(n), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i)
      data[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(world().rank()));
    engine.allreduce(data, ReduceOp::Sum);
    std::size_t wrong = 0;
    const std::size_t size = static_cast<std::size_t>(world().size()), ranks = size * (size - 1) / 2;
    for (std::size_t i = 0; i < n; ++i) wrong += data[i] != static_cast<std::uint8_t>(i * 7 * size + ranks) ? 1 : 0;
    EXPECT_EQ(wrong, 0U) << name_of(path);
  }
}

}  // namespace
}  // namespace lockstep::test
