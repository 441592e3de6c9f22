// The public allreduce: every path, type and operation, in place and not, memory of the window and any other, short and
// long, over all ranks, parts of them, and nodes made by hand, against the reduction tree written down plainly, bit for
// bit; and against MPI's own allreduce where any order gives the same.
#include "lockstep/parallel/allreduce.h"

#include <gtest/gtest.h>

#include <bit>

#include "lockstep/comm/combine.h"
#include "lockstep/core/random.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using comm::Communicator, comm::ReduceOp;

constexpr std::array kOps{ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max};

// Element i of rank r: of all magnitudes, so that another order of addition gives other bits.
template <class T>
T value_of(int rank, std::int64_t i) {
  std::uint64_t x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                    static_cast<std::uint64_t>(rank + 1) * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 32;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    const double mantissa = static_cast<double>(x % 4001) / 2000 - 1;
    return static_cast<T>(static_cast<float>(std::ldexp(mantissa, static_cast<int>(x >> 40) % 9 - 4)));
  }
}

// Node (level, index) of the tree over `size` ranks, by definition.
template <ReduceOp op, class T>
T node_value(int size, int level, int index, std::int64_t i) {
  if (level == 0) return value_of<T>(index, i);
  const T left = node_value<op, T>(size, level - 1, 2 * index, i);
  if (((2 * index + 1) << (level - 1)) >= size) return left;
  return comm::combined<op>(left, node_value<op, T>(size, level - 1, 2 * index + 1, i));
}

template <class T>
T expected(ReduceOp op, int size, std::int64_t i) {
  int levels = 0;
  while ((1 << levels) < size) ++levels;
  switch (op) {
    case ReduceOp::Sum:
      return node_value<ReduceOp::Sum, T>(size, levels, 0, i);
    case ReduceOp::Product:
      return node_value<ReduceOp::Product, T>(size, levels, 0, i);
    case ReduceOp::Min:
      return node_value<ReduceOp::Min, T>(size, levels, 0, i);
    default:
      return node_value<ReduceOp::Max, T>(size, levels, 0, i);
  }
}

template <class T>
void fill(std::span<T> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of<T>(rank, static_cast<std::int64_t>(i));
}

template <class T>
void expect_result(std::span<const T> values, ReduceOp op, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T want = expected<T>(op, size, static_cast<std::int64_t>(i));
    ASSERT_EQ(std::memcmp(&values[i], &want, sizeof(T)), 0)
        << name_of(op) << ", element " << i << " of " << values.size();
  }
}

template <class T>
std::span<T> as(std::span<std::byte> bytes, std::int64_t count) {
  return {reinterpret_cast<T*>(bytes.data()), static_cast<std::size_t>(count)};
}

// Domains of `per` ranks each, ranks dealt out in turn or one block after the other; the last may have fewer.
Domains domains_of(const Communicator& comm, int per, bool dealt) {
  const int size = comm.size(), count = (size + per - 1) / per;
  Domains d{.rank = comm.rank()};
  d.members.resize(static_cast<std::size_t>(count));
  for (int r = 0; r < size; ++r) {
    d.domain_of.push_back(dealt ? r % count : r / per);
    d.members[static_cast<std::size_t>(d.domain_of.back())].push_back(r);
  }
  return d;
}

template <class T>
class AllreduceOf : public testing::Test {
 protected:
  // In chunks so short that the sizes below need several, and slots are used again.
  static constexpr std::int64_t kChunk = 16 << 10;
  static inline const std::vector<std::int64_t> kSizes{0, 1, 3, 1023, 2049, 5003, 70'001};

  static void check(const Communicator& comm, const AllreduceOptions& options) {
    Allreduce engine(comm, options);
    const auto bytes = static_cast<std::size_t>(kSizes.back()) * sizeof(T);
    const std::span<std::byte> window = engine.allocate(bytes), other = engine.allocate(bytes);
    std::vector<T> own(static_cast<std::size_t>(kSizes.back())), out(own.size());
    const int rank = comm.rank(), size = comm.size();
    for (const std::int64_t n : kSizes) {
      const auto count = static_cast<std::size_t>(n);
      for (const ReduceOp op : kOps) {
        SCOPED_TRACE(fmt::format("path {}, {} ranks in {} domains", name_of(engine.path()), size,
                                 options.domains ? options.domains->count() : 0));
        const auto try_it = [&](std::span<T> in, std::span<T> result) {
          fill(in, rank);
          engine.allreduce(in, result, op);
          expect_result<T>(result, op, size);
          if (in.data() == result.data()) return;
          for (std::size_t i = 0; i < in.size(); ++i) {
            const T want = value_of<T>(rank, static_cast<std::int64_t>(i));
            ASSERT_EQ(std::memcmp(&in[i], &want, sizeof(T)), 0) << "input " << i << " was changed";
          }
        };
        const auto o = std::span(own).first(count), r = std::span(out).first(count);
        const std::span<T> w = as<T>(window, n), v = as<T>(other, n);
        for (const auto& [in, result] :
             {std::pair(o, o), std::pair(o, r), std::pair(w, w), std::pair(w, v), std::pair(w, r), std::pair(o, w)})
          try_it(in, result);
        rank % 2 == 0 ? try_it(w, w) : try_it(o, r);  // ranks may differ in where their memory lies
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
};

using Elements = testing::Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, Float16, BFloat16,
                                std::uint32_t, std::int32_t, float, std::uint64_t, std::int64_t, double>;
TYPED_TEST_SUITE(AllreduceOf, Elements);

TYPED_TEST(AllreduceOf, WindowIsTheTree) {
  this->check(world(), {.path = AllreducePath::Shared, .chunk_bytes = this->kChunk});
}

TYPED_TEST(AllreduceOf, MessagesAreTheTree) {
  this->check(world(), {.path = AllreducePath::Messages, .chunk_bytes = this->kChunk});
}

TYPED_TEST(AllreduceOf, NodesAreTheTree) {
  for (const int per : {2, 3}) {
    for (const bool dealt : {false, true}) {
      if (world().size() > per)
        this->check(world(), {.path = AllreducePath::Hierarchical,
                              .domains = domains_of(world(), per, dealt),
                              .chunk_bytes = this->kChunk});
    }
  }
}

}  // namespace
}  // namespace lockstep::test
