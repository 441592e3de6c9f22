// Messages between pairs: order, tags, splitting, requests that are moved, dropped or left, and lengths that do not
// match.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "lockstep/comm/mpi_interop.h"
#include "lockstep/comm/shared_window.h"
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

// Nobody receives this long message yet. Whoever drops a send goes on at once, and its memory is its own again.
TEST(Messages, ADroppedSendDoesNotWaitForItsReceiver) {
  const Communicator& comm = world();
  auto sent = ramp(1 << 20, comm.rank());
  { const Request dropped = comm.isend(sent, right_of(comm), 8); }
  std::ranges::fill(sent, -1.0F);
  comm.barrier();
  std::vector<float> received(sent.size());
  comm.recv(received, left_of(comm), 8);
  EXPECT_EQ(received, ramp(sent.size(), left_of(comm)));
}

// A long message that has begun to arrive cannot be taken back: its sender rests in the middle of it, outside MPI. What
// comes later must not reach memory whose request is gone. (With a single copy by the kernel the message is there at
// once; mpi.test_messages.in_parts runs this without.)
TEST(Messages, NothingArrivesInMemoryWhoseRequestIsGone) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else sends";
  const Communicator comm = Communicator::world();
  const comm::SharedWindow memory(world(), sizeof(int));
  const std::atomic_ref given_up(*reinterpret_cast<int*>(memory.segment(0).data()));
  const std::vector<float> sent(1 << 20, 1.0F);
  std::vector<float> received(sent.size());
  if (comm.rank() == 0) {
    Request outgoing = comm.isend(sent, 1, 5);
    while (given_up.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    outgoing.wait();
  } else if (comm.rank() == 1) {
    MPI_Probe(0, 5, comm::handle_of(comm), MPI_STATUS_IGNORE);
    EXPECT_THROW(
        {
          const Request lost = comm.irecv(received, 0, 5);
          throw std::runtime_error("in between");
        },
        std::runtime_error);
    std::ranges::fill(received, -1.0F);
    given_up.store(1);
  }
  world().barrier();  // rank 0 has sent all of it
  if (comm.rank() == 1) {
    EXPECT_EQ(std::ranges::count(received, -1.0F), std::ssize(received));
  }
}

using FloatVector = std::vector<float>;

TEST(Messages, AKeeperHoldsMemoryUntilTheMessageIsComplete) {
  const Communicator& comm = world();
  auto sent = std::make_shared<FloatVector>(ramp(1 << 18, comm.rank())),
       received = std::make_shared<FloatVector>(1 << 18);
  const std::weak_ptr<FloatVector> seen = sent;
  Request incoming = comm.irecv(*received, left_of(comm), 3, received);
  Request outgoing = comm.isend(*sent, right_of(comm), 3, sent);
  sent.reset();
  EXPECT_FALSE(seen.expired());
  outgoing.wait();
  EXPECT_TRUE(seen.expired());
  incoming.wait();
  EXPECT_EQ(*received, ramp(1 << 18, left_of(comm)));
  EXPECT_FALSE(comm.has_abandoned());
}

// As above, but the message comes straight into memory that was handed over.
TEST(Messages, AKeeperOutlivesAMessageThatCannotBeTakenBack) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else sends";
  const Communicator comm = Communicator::world();
  const comm::SharedWindow memory(world(), sizeof(int));
  const std::atomic_ref given_up(*reinterpret_cast<int*>(memory.segment(0).data()));
  const std::size_t n = 1 << 20;
  if (comm.rank() == 0) {
    const std::vector<float> sent(n, 1.0F);
    Request outgoing = comm.isend(sent, 1, 5);
    while (given_up.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    outgoing.wait();
  } else if (comm.rank() == 1) {
    MPI_Probe(0, 5, comm::handle_of(comm), MPI_STATUS_IGNORE);
    auto received = std::make_shared<FloatVector>(n);
    const std::weak_ptr<FloatVector> seen = received;
    {
      const Request lost = comm.irecv(*received, 0, 5, received);
      received.reset();
    }
    EXPECT_EQ(seen.expired(), !comm.has_abandoned());
    given_up.store(1);
  }
  world().barrier();
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

// Nobody answers, and somebody else on this rank gives up: whoever waits learns why.
TEST(Messages, AWaitEndsOnAPoisonedCommunicator) {
  const Communicator comm = Communicator::world();
  float never = 0;
  Request incoming = comm.irecv(std::span(&never, 1), left_of(comm), 7);
  const std::string error = error_of([&] {
    const std::jthread other([&] { comm.poison("a step failed"); });
    incoming.wait();
  });
  EXPECT_NE(error.find("[recv]"), std::string::npos) << error;
  EXPECT_NE(error.find("a step failed"), std::string::npos) << error;
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
