// Every collective against what it must give, for every element type, with whole messages and with messages split as
// those past 2^31 are: the limit is lowered to a few bytes, so that the same code splits short ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using comm::ReduceOp;

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

// Element i of rank r, in a range that every type holds exactly.
template <class T>
T element_of(int rank, std::int64_t i) {
  return static_cast<T>(static_cast<float>((rank * 7 + i * 3) % 29));
}

template <class T>
float as_float(T value) {
  return static_cast<float>(value);
}

float reduced(ReduceOp op, float a, float b) {
  if (op == ReduceOp::Min || op == ReduceOp::Max) return op == ReduceOp::Min ? std::min(a, b) : std::max(a, b);
  return op == ReduceOp::Sum ? a + b : a * b;
}

// Products of these are small in every type.
template <class T>
std::vector<T> factors_of(int rank, std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<float>(1 + (rank + i) % 2));
  return values;
}

template <class T>
std::vector<T> values_of(int rank, std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    values[static_cast<std::size_t>(i)] = element_of<T>(rank, i);
  }
  return values;
}

template <class T>
class Collectives : public testing::Test {
 protected:
  // As given, in parts of 24 bytes, and element by element.
  static inline std::vector<Communicator> comms;
  static void SetUpTestSuite() {
    for (const std::int64_t limit : {std::int64_t{1} << 30, std::int64_t{24}, std::int64_t{1}}) {
      comms.push_back(Communicator::world({.message_limit = limit}));
    }
  }
  static void TearDownTestSuite() { comms.clear(); }

  template <class Body>
  static void for_each_case(Body&& body) {
    for (std::size_t c = 0; c < comms.size(); ++c) {
      for (const std::int64_t n : {0, 1, 5, 24, 37}) {
        SCOPED_TRACE(testing::Message() << "limit case " << c << ", n = " << n);
        body(comms[c], n);
      }
    }
  }
};

using Sent = testing::Types<std::byte, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, Float16, BFloat16,
                            std::uint32_t, std::int32_t, float, std::uint64_t, std::int64_t, double>;
TYPED_TEST_SUITE(Collectives, Sent);

TYPED_TEST(Collectives, BroadcastFromEachRoot) {
  this->for_each_case([](const Communicator& comm, std::int64_t n) {
    for (int root = 0; root < comm.size(); ++root) {
      auto data = values_of<TypeParam>(comm.rank(), n);
      comm.broadcast(data, root);
      EXPECT_EQ(data, values_of<TypeParam>(root, n));
    }
  });
}

TYPED_TEST(Collectives, ReductionsEqualALoop) {
  if constexpr (!std::is_same_v<TypeParam, std::byte>) {
    this->for_each_case([](const Communicator& comm, std::int64_t n) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max}) {
        auto expected = values_of<TypeParam>(0, n);
        for (int r = 1; r < comm.size(); ++r) {
          for (std::int64_t i = 0; i < n; ++i) {
            TypeParam& e = expected[static_cast<std::size_t>(i)];
            const TypeParam v = element_of<TypeParam>(r, i);
            e = static_cast<TypeParam>(reduced(op, as_float(e), as_float(v)));
          }
        }
        const auto mine = values_of<TypeParam>(comm.rank(), n);
        auto data = mine;
        comm.allreduce(data, op);
        EXPECT_EQ(data, expected);
        const int root = comm.size() - 1;
        data = mine;
        comm.reduce(data, op, root);
        EXPECT_EQ(data, comm.rank() == root ? expected : mine);
      }
    });
  }
}

TYPED_TEST(Collectives, ProductsEqualALoop) {
  if constexpr (!std::is_same_v<TypeParam, std::byte>) {
    this->for_each_case([](const Communicator& comm, std::int64_t n) {
      auto expected = factors_of<TypeParam>(0, n);
      for (int r = 1; r < comm.size(); ++r) {
        const auto factors = factors_of<TypeParam>(r, n);
        for (std::size_t i = 0; i < factors.size(); ++i)
          expected[i] = static_cast<TypeParam>(reduced(ReduceOp::Product, as_float(expected[i]), as_float(factors[i])));
      }
      auto data = factors_of<TypeParam>(comm.rank(), n);
      comm.allreduce(data, ReduceOp::Product);
      EXPECT_EQ(data, expected);
    });
  }
}

TYPED_TEST(Collectives, GathersEqualConcatenation) {
  this->for_each_case([](const Communicator& comm, std::int64_t n) {
    std::vector<TypeParam> expected;
    for (int r = 0; r < comm.size(); ++r) {
      const auto part = values_of<TypeParam>(r, n);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const auto mine = values_of<TypeParam>(comm.rank(), n);
    std::vector<TypeParam> all(expected.size());
    comm.allgather(mine, all);
    EXPECT_EQ(all, expected);
    // In place: my part lies in the result already.
    std::vector<TypeParam> in_place(expected.size());
    std::copy(mine.begin(), mine.end(), in_place.begin() + n * comm.rank());
    comm.allgather(std::span(in_place).subspan(at(comm.rank()) * static_cast<std::size_t>(n), mine.size()), in_place);
    EXPECT_EQ(in_place, expected);
    std::vector<TypeParam> gathered(comm.rank() == 0 ? expected.size() : 0);
    comm.gather(mine, gathered);
    if (comm.rank() == 0) {
      EXPECT_EQ(gathered, expected);
    }
  });
}

TYPED_TEST(Collectives, UnevenPartsGatherAndScatter) {
  this->for_each_case([](const Communicator& comm, std::int64_t n) {
    // Rank 1 has nothing.
    std::vector<std::int64_t> counts;
    std::vector<TypeParam> whole;
    for (int r = 0; r < comm.size(); ++r) {
      counts.push_back(r == 1 ? 0 : n + r);
      const auto part = values_of<TypeParam>(r, counts.back());
      whole.insert(whole.end(), part.begin(), part.end());
    }
    const auto mine = values_of<TypeParam>(comm.rank(), counts[at(comm.rank())]);
    std::vector<TypeParam> all(whole.size());
    comm.allgatherv(mine, all, counts);
    EXPECT_EQ(all, whole);
    const int root = comm.size() / 2;
    std::vector<TypeParam> gathered(comm.rank() == root ? whole.size() : 0);
    comm.gatherv(mine, gathered, comm.rank() == root ? counts : std::vector<std::int64_t>{}, root);
    if (comm.rank() == root) {
      EXPECT_EQ(gathered, whole);
    }
    std::vector<TypeParam> received(mine.size());
    comm.scatterv(comm.rank() == root ? whole : std::vector<TypeParam>{},
                  comm.rank() == root ? counts : std::vector<std::int64_t>{}, received, root);
    EXPECT_EQ(received, mine);
  });
}

TYPED_TEST(Collectives, AllToAllTransposes) {
  this->for_each_case([](const Communicator& comm, std::int64_t n) {
    // From rank s to rank d: n + s + 2d elements, those of "rank" 10 s + d.
    const auto count = [n](int s, int d) { return s == 0 && d == 1 ? 0 : n + s + 2 * d; };
    std::vector<TypeParam> send, expected;
    std::vector<std::int64_t> send_counts, receive_counts;
    for (int peer = 0; peer < comm.size(); ++peer) {
      send_counts.push_back(count(comm.rank(), peer));
      const auto out = values_of<TypeParam>(10 * comm.rank() + peer, send_counts.back());
      send.insert(send.end(), out.begin(), out.end());
      receive_counts.push_back(count(peer, comm.rank()));
      const auto in = values_of<TypeParam>(10 * peer + comm.rank(), receive_counts.back());
      expected.insert(expected.end(), in.begin(), in.end());
    }
    std::vector<TypeParam> received(expected.size());
    comm.alltoallv(send, send_counts, received, receive_counts);
    EXPECT_EQ(received, expected);
  });
}

TEST(CollectiveObjects, ScalarsVectorsAndStrings) {
  for (const std::int64_t limit : {std::int64_t{1} << 30, std::int64_t{3}}) {
    const Communicator comm = Communicator::world({.message_limit = limit});
    const int last = comm.size() - 1;
    EXPECT_EQ(comm.allreduce(std::int64_t{comm.rank() + 1}, ReduceOp::Sum), comm.size() * (comm.size() + 1) / 2);
    EXPECT_EQ(comm.allreduce(0.5 * comm.rank(), ReduceOp::Max), 0.5 * last);
    EXPECT_EQ(comm.broadcast_value(1.5F * static_cast<float>(comm.rank()), last), 1.5F * static_cast<float>(last));

    std::vector<double> vector(at(comm.rank()), 2.0);
    comm.broadcast_vector(vector, last);
    EXPECT_EQ(vector, std::vector<double>(at(last), 2.0));
    const std::vector<std::byte> bytes(5, std::byte(comm.rank()));
    EXPECT_EQ(comm.broadcast_bytes(bytes, last), std::vector<std::byte>(5, std::byte(last)));

    const std::string text = std::string("rank\0", 5) + std::string(at(comm.rank()) * 3, 'x');
    EXPECT_EQ(comm.broadcast_string(text, last), std::string("rank\0", 5) + std::string(at(last) * 3, 'x'));
    std::vector<std::string> expected;
    for (int r = 0; r < comm.size(); ++r) {
      expected.push_back(r == 1 ? "" : std::string(at(r) + 1, static_cast<char>('a' + r)));
    }
    EXPECT_EQ(comm.allgather_strings(expected[at(comm.rank())]), expected);
    const auto gathered = comm.gather_strings(expected[at(comm.rank())], last);
    EXPECT_EQ(gathered, comm.rank() == last ? expected : std::vector<std::string>{});
  }
}

TEST(CollectiveErrors, NameOperationRankAndCount) {
  const Communicator& comm = world();
  std::vector<float> three(3), wrong(3 * at(comm.size()) + 1);
  std::vector<std::byte> opaque(4);
  const std::string error = error_of([&] { comm.allgather(three, wrong); });
  EXPECT_NE(error.find("[allgather]"), std::string::npos) << error;
  EXPECT_NE(error.find("rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size())),
            std::string::npos);
  EXPECT_NE(error.find("3 f32 from each"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { comm.broadcast(three, comm.size()); }).find("root " + std::to_string(comm.size())),
            std::string::npos);
  EXPECT_NE(error_of([&] { comm.broadcast(three, -1); }).find("root -1"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.allreduce(opaque, ReduceOp::Sum); }).find("opaque"), std::string::npos);
  const std::vector<std::int64_t> negative(at(comm.size()), -1), short_by_one(at(comm.size() - 1), 0);
  std::vector<float> none;
  EXPECT_NE(error_of([&] { comm.alltoallv(none, negative, none, negative); }).find("count is -1"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.alltoallv(none, short_by_one, none, short_by_one); }).find("counts for"),
            std::string::npos);
  if (comm.size() > 1) {  // as many as the buffers hold, but one is negative
    std::vector<std::int64_t> odd(at(comm.size()), 0);
    odd[0] = -1;
    odd[1] = 1;
    std::vector<float> all(0);
    EXPECT_NE(error_of([&] { comm.allgatherv(none, all, odd); }).find("a count is -1"), std::string::npos);
  }
  // Refused before anything was sent: the communicator goes on.
  EXPECT_FALSE(comm.poisoned());
  EXPECT_EQ(comm.allreduce(std::int32_t{1}, ReduceOp::Sum), comm.size());
}

TEST(StartedCollectives, CompleteInAnyOrder) {
  for (const std::int64_t limit : {std::int64_t{1} << 30, std::int64_t{4096}}) {
    const Communicator comm = Communicator::world({.message_limit = limit});
    const auto sums = std::make_shared<std::vector<double>>(3000, comm.rank() + 1.0);
    const auto gathered = std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(2 * comm.size()));
    const auto mine = std::make_shared<std::array<std::int32_t, 2>>(std::array{comm.rank(), -comm.rank()});
    std::vector<comm::Request> requests;
    requests.push_back(comm.iallreduce(*sums, ReduceOp::Sum, sums));
    requests.push_back(comm.iallgather(
        *mine, *gathered, std::make_shared<std::array<comm::Keeper, 2>>(std::array<comm::Keeper, 2>{mine, gathered})));
    requests[1].wait();
    for (int r = 0; r < comm.size(); ++r) {
      EXPECT_EQ((*gathered)[static_cast<std::size_t>(2 * r)], r);
      EXPECT_EQ((*gathered)[static_cast<std::size_t>(2 * r + 1)], -r);
    }
    wait_all(requests);
    const double sum = comm.size() * (comm.size() + 1) / 2.0;
    EXPECT_TRUE(std::ranges::all_of(*sums, [&](double v) { return v == sum; }));
  }
}

TEST(StartedCollectives, RefuseWhatMpiDoesNotKnow) {
  const Communicator comm = Communicator::world({.message_limit = 16});
  std::vector<BFloat16> narrow(4);
  EXPECT_NE(error_of([&] { comm.iallreduce(narrow, ReduceOp::Sum, {}).wait(); }).find("MPI has no type bf16"),
            std::string::npos);
  std::vector<double> mine(3), all(static_cast<std::size_t>(3 * comm.size()));
  EXPECT_NE(error_of([&] { comm.iallgather(mine, all, {}).wait(); }).find("exceed one message of at most 16 bytes"),
            std::string::npos);
  EXPECT_FALSE(comm.poisoned());
}

TEST(CollectiveErrors, APoisonedFamilyThrowsAtOnce) {
  const Communicator comm = Communicator::world();
  const Communicator child = comm.duplicate();
  child.poison("rank 1 lost its mind");
  EXPECT_TRUE(comm.poisoned());
  for (const Communicator* one : {&comm, &child, &comm.group("node")}) {
    const std::string error = error_of([&] { one->barrier(); });
    EXPECT_NE(error.find("[barrier]"), std::string::npos) << error;
    EXPECT_NE(error.find("lost its mind"), std::string::npos) << error;
  }
  EXPECT_FALSE(world().poisoned());
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
