// Messages between pairs: order, tags, splitting, requests that are moved, dropped or left, and lengths that do not
// match.
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "lockstep/comm/mpi_interop.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using comm::Request;

int right_of(const Communicator& comm) { return (comm.rank() + 1) % comm.size(); }
int left_of(const Communicator& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

std::vector<float> ramp(std::size_t n, int rank) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1000.0F * static_cast<float>(rank));
  return values;
}

TEST(Messages, GoRoundTheRing) {
  for (const std::int64_t limit : {std::int64_t{1} << 30, std::int64_t{20}}) {
    const Communicator comm = Communicator::world({.message_limit = limit});
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{6}, std::size_t{10'000}}) {
      std::vector<float> received(n, -1);
      comm.sendrecv(ramp(n, comm.rank()), right_of(comm), received, left_of(comm), 3);
      EXPECT_EQ(received, ramp(n, left_of(comm)));
    }
  }
}

TEST(Messages, KeepOrderWithinATagAndMatchByTag) {
  const Communicator& comm = world();
  std::vector<std::int32_t> sent{1, 2, 3, 4}, received(4);
  std::vector<Request> requests;
  const int tags[] = {5, 5, Communicator::kMaxTag, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    requests.push_back(comm.isend(std::span(sent).subspan(i, 1), right_of(comm), tags[i]));
  }
  for (const std::size_t i : {std::size_t{3}, std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
    comm.recv(std::span(received).subspan(i, 1), left_of(comm), tags[i]);
  }
  wait_all(requests);
  EXPECT_EQ(received, sent);
}

TEST(Messages, TestDrivesALongMessageHome) {
  const Communicator comm = Communicator::world({.message_limit = 1 << 16});
  const std::size_t n = 1 << 20;  // 4 MiB in 64 parts, beyond what is sent eagerly
  const auto sent = ramp(n, comm.rank());
  std::vector<float> received(n);
  std::vector<Request> requests;
  requests.push_back(comm.irecv(received, left_of(comm), 1));
  requests.push_back(comm.isend(sent, right_of(comm), 1));
  EXPECT_TRUE(requests[0].active());
  while (!test_all(requests)) {
  }
  EXPECT_FALSE(requests[0].active());
  EXPECT_TRUE(requests[0].test());
  requests[0].wait();
  EXPECT_EQ(received, ramp(n, left_of(comm)));
}

TEST(Messages, ARequestMoves) {
  const Communicator& comm = world();
  float sent = 2.5F, received = 0;
  Request empty;
  EXPECT_FALSE(empty.active());
  EXPECT_TRUE(empty.test());
  Request incoming = comm.irecv(std::span(&received, 1), left_of(comm));
  empty = std::move(incoming);
  EXPECT_FALSE(incoming.active());  // NOLINT: what was moved from holds nothing
  EXPECT_TRUE(empty.active());
  const Request& same = empty;
  empty = std::move(const_cast<Request&>(same));
  comm.send(std::span(&sent, 1), right_of(comm));
  empty.wait();
  EXPECT_EQ(received, 2.5F);
}

TEST(Messages, ADroppedReceiveIsTakenBack) {
  const Communicator& comm = world();
  float first = 0, second = 0;
  { const Request dropped = comm.irecv(std::span(&first, 1), left_of(comm), 9); }
  comm.barrier();
  const float sent = 7;
  comm.sendrecv(std::span(&sent, 1), right_of(comm), std::span(&second, 1), left_of(comm), 9);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 7);
}

TEST(Messages, ADroppedSendStillArrives) {
  const Communicator& comm = world();
  const auto sent = ramp(100, comm.rank());
  std::vector<float> received(100);
  Request incoming = comm.irecv(received, left_of(comm), 2);
  { const Request dropped = comm.isend(sent, right_of(comm), 2); }
  incoming.wait();
  EXPECT_EQ(received, ramp(100, left_of(comm)));
}

TEST(Messages, AnExceptionDoesNotHangInARequest) {
  // Nobody receives this long message: the destructor gives it up after a while.
  const Communicator comm = Communicator::world();
  const std::vector<float> sent(1 << 20);
  EXPECT_THROW(
      {
        const Request lost = comm.isend(sent, right_of(comm), 4);
        throw std::runtime_error("in between");
      },
      std::runtime_error);
  // Taken in after all, so that no memory of ours is left in use.
  std::vector<float> received(1 << 20);
  comm.recv(received, left_of(comm), 4);
  world().barrier();
}

TEST(Messages, APoisonedCommunicatorDoesNotHangInARequest) {
  const Communicator comm = Communicator::world();
  const std::vector<float> sent(1 << 20);
  {
    const Request lost = comm.isend(sent, right_of(comm), 4);
    comm.poison("a step failed");
  }
  // Taken in after all, past the poison, so that no memory of ours is left in use.
  std::vector<float> received(1 << 20);
  MPI_Recv(received.data(), 1 << 20, MPI_FLOAT, left_of(comm), 4, comm::handle_of(comm), MPI_STATUS_IGNORE);
  world().barrier();
}

TEST(Messages, AnotherLengthIsAnErrorAndPoisons) {
  for (const std::size_t expected : {std::size_t{3}, std::size_t{5}}) {
    const Communicator comm = Communicator::world();
    const std::vector<float> sent(4);
    std::vector<float> received(expected);
    Request outgoing = comm.isend(sent, right_of(comm), 6);
    const std::string error = error_of([&] { comm.recv(received, left_of(comm), 6); });
    outgoing.wait();
    EXPECT_NE(error.find("[recv] rank " + std::to_string(comm.rank())), std::string::npos) << error;
    EXPECT_NE(error.find("f32 from rank " + std::to_string(left_of(comm)) + ", tag 6"), std::string::npos) << error;
    EXPECT_TRUE(comm.poisoned());
    EXPECT_NE(error_of([&] { comm.send(sent, right_of(comm)); }).find("earlier failure"), std::string::npos);
    world().barrier();
  }
}

TEST(Messages, WrongArgumentsAreRefused) {
  const Communicator& comm = world();
  float value = 0;
  const std::span one(&value, 1);
  EXPECT_NE(error_of([&] { comm.send(one, comm.size()); }).find("destination"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.recv(one, -1); }).find("source -1"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.send(one, 0, Communicator::kMaxTag + 1); }).find("tag 30000"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.recv(one, 0, -1); }).find("tag -1"), std::string::npos);
  EXPECT_FALSE(comm.poisoned());
}

}  // namespace
}  // namespace lockstep::test
