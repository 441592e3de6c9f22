// Who is where: ranks, nodes, splits, named groups, translation, communicators of callers, and the end of their lives.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <numeric>

#include "lockstep/comm/environment.h"
#include "lockstep/comm/mpi_interop.h"
#include "lockstep/comm/shared_window.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using comm::ReduceOp;

TEST(SharedMemory, HasNoMoreRoomThanAFileMayHave) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small { 1 << 20, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::size_t room = comm::free_shared_memory();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_LE(room, std::size_t{1} << 20);
}

TEST(Communicator, KnowsItsPlace) {
  EXPECT_GE(world().rank(), 0);
  EXPECT_LT(world().rank(), world().size());
  // run.sh starts all ranks on this machine.
  EXPECT_EQ(world().node_count(), 1);
  EXPECT_EQ(world().node_rank(), 0);
  EXPECT_EQ(world().local_rank(), world().rank());
  EXPECT_EQ(world().local_size(), world().size());
  EXPECT_FALSE(world().host().empty());
}

TEST(Communicator, SharingDomainsAreNodes) {
  // Even and odd ranks as if on two machines that bear one host name.
  const bool odd = world().rank() % 2 == 1;
  const Communicator comm = Communicator::world({.sharing_domain = odd ? "odd" : "even"});
  EXPECT_EQ(comm.node_count(), std::min(world().size(), 2));
  EXPECT_EQ(comm.node_rank(), odd ? 1 : 0);
  EXPECT_EQ(comm.local_rank(), world().rank() / 2);
  EXPECT_EQ(comm.local_size(), (world().size() + (odd ? 0 : 1)) / 2);

  const Communicator& node = comm.group("node");
  EXPECT_EQ(node.size(), comm.local_size());
  EXPECT_EQ(node.rank(), comm.local_rank());
  EXPECT_EQ(node.node_count(), 1);
  EXPECT_EQ(&node.group("node"), &node);
  const Communicator& cross = comm.group("cross");
  EXPECT_EQ(cross.rank(), comm.node_rank());
  EXPECT_EQ(cross.local_size(), 1);
  // A member's rank in the world, found through the group.
  EXPECT_EQ(node.to_parent(node.rank()), comm.rank());
  for (const auto parent : node.allgather(std::int32_t{comm.rank()})) {
    EXPECT_EQ(parent % 2 == 1, odd);
  }
}

TEST(Communicator, SplitOrdersByKey) {
  const int color = world().rank() % 2;
  const Communicator half = world().split(color, -world().rank());
  EXPECT_EQ(half.size(), (world().size() + (color == 0 ? 1 : 0)) / 2);
  for (int r = 0; r < half.size(); ++r) {
    const int parent = half.to_parent(r);
    EXPECT_EQ(parent % 2, color);
    EXPECT_EQ(half.from_parent(parent), r);
    EXPECT_EQ(half.translate(r, world()), parent);
    EXPECT_EQ(world().translate(parent, half), r);
    if (r > 0) {
      EXPECT_LT(parent, half.to_parent(r - 1));
    }
  }
  for (int other = 0; other < world().size(); ++other) {
    if (other % 2 != color) {
      EXPECT_EQ(half.from_parent(other), std::nullopt);
      EXPECT_EQ(world().translate(other, half), std::nullopt);
    }
  }
  EXPECT_EQ(half.allreduce(std::int32_t{1}, ReduceOp::Sum), half.size());
  EXPECT_EQ(half.group("node").size(), half.size());
}

TEST(Communicator, NamedGroupsKeepTheirOrder) {
  Communicator comm = world().duplicate();
  std::vector<int> ranks(static_cast<std::size_t>((world().size() + 1) / 2));
  std::iota(ranks.rbegin(), ranks.rend(), world().size() / 2);  // the upper half, last rank first
  const Communicator* group = comm.add_group("upper", ranks);
  if (world().rank() >= world().size() / 2) {
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(&comm.group("upper"), group);
    EXPECT_EQ(group->rank(), world().size() - 1 - world().rank());
    EXPECT_EQ(group->to_parent(0), world().size() - 1);
    EXPECT_EQ(group->broadcast_value(std::int32_t{comm.rank()}), world().size() - 1);
  } else {
    EXPECT_EQ(group, nullptr);
    EXPECT_EQ(comm.find_group("upper"), nullptr);
    EXPECT_NE(error_of([&] { comm.group("upper"); }).find("not a member of group 'upper'"), std::string::npos);
  }
}

TEST(Communicator, RefusesWrongGroups) {
  Communicator comm = world().duplicate();
  const std::array<int, 1> zero{0}, outside{world().size()};
  const std::array<int, 2> twice{0, 0};
  comm.add_group("one", zero);
  EXPECT_NE(error_of([&] { comm.add_group("one", zero); }).find("'one' exists already"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.add_group("two", twice); }).find("rank 0 twice"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.add_group("three", outside); }).find("is outside 0.."), std::string::npos);
  EXPECT_NE(error_of([&] { comm.group("four"); }).find("no group 'four'"), std::string::npos);
  EXPECT_NE(error_of([&] { comm.split(-1); }).find("color is -1"), std::string::npos);
  if (world().size() > 1) {
    const std::array<int, 1> mine{world().rank()};
    const std::string error = error_of([&] { comm.add_group("five", mine); });
    EXPECT_NE(error.find("group five must be the same on all ranks"), std::string::npos) << error;
  }
  EXPECT_FALSE(comm.poisoned());
  EXPECT_EQ(comm.allreduce(std::int32_t{1}, ReduceOp::Sum), world().size());
}

TEST(Communicator, DuplicatesDoNotHearEachOther) {
  const Communicator a = world().duplicate(), b = world().duplicate();
  const int right = (world().rank() + 1) % world().size(),
            left = (world().rank() + world().size() - 1) % world().size();
  float first = 1, second = 2, from_a = 0, from_b = 0;
  auto send_a = a.isend(std::span(&first, 1), right, 7);
  auto send_b = b.isend(std::span(&second, 1), right, 7);
  b.recv(std::span(&from_b, 1), left, 7);
  a.recv(std::span(&from_a, 1), left, 7);
  send_a.wait();
  send_b.wait();
  EXPECT_EQ(from_a, 1);
  EXPECT_EQ(from_b, 2);
}

TEST(Communicator, SelfIsAlone) {
  const Communicator self = Communicator::self();
  EXPECT_EQ(self.size(), 1);
  EXPECT_EQ(self.rank(), 0);
  EXPECT_EQ(self.node_count(), 1);
  EXPECT_EQ(self.allreduce(3.5, ReduceOp::Sum), 3.5);
  self.barrier();
  float sent = 4, received = 0;
  self.sendrecv(std::span(&sent, 1), 0, std::span(&received, 1), 0);
  EXPECT_EQ(received, 4);
}

TEST(Communicator, OfACallerWhoRunsMpi) {
  // A caller's communicator: the world backwards, cut in two. It is freed before the duplicate is used.
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm callers = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &callers), MPI_SUCCESS);
  int expected_rank = 0, expected_size = 0;
  MPI_Comm_rank(callers, &expected_rank);
  MPI_Comm_size(callers, &expected_size);
  Communicator comm = comm::duplicate_of(callers);
  // The caller's handler is as it was; only the duplicate returns errors.
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(callers, &handler);
  EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_get_errhandler(comm::handle_of(comm), &handler);
  EXPECT_EQ(handler, MPI_ERRORS_RETURN);
  MPI_Comm_free(&callers);
  EXPECT_EQ(comm.rank(), expected_rank);
  EXPECT_EQ(comm.size(), expected_size);
  EXPECT_EQ(comm.allreduce(std::int32_t{world().rank() % 2}, ReduceOp::Sum), (world().rank() % 2) * expected_size);
  EXPECT_EQ(comm.translate(comm.rank(), world()), world().rank());
  EXPECT_NE(error_of([] { comm::duplicate_of(MPI_COMM_NULL); }).find("MPI_COMM_NULL"), std::string::npos);
}

TEST(Communicator, MovesAndOutlivesItsParent) {
  auto parent = std::make_unique<Communicator>(world().duplicate());
  Communicator child = parent->split(0, world().rank());
  parent.reset();
  EXPECT_EQ(child.allreduce(std::int32_t{1}, ReduceOp::Sum), world().size());
  Communicator moved = std::move(child);
  child = world().duplicate();
  EXPECT_EQ(moved.group("node").allreduce(std::int32_t{1}, ReduceOp::Sum), world().size());
  EXPECT_EQ(child.size(), world().size());
}

TEST(Communicator, RefusesOptionsThatDiffer) {
  EXPECT_NE(error_of([] { Communicator::world({.message_limit = 0}); }).find("at least 1"), std::string::npos);
  if (world().size() > 1) {
    const std::string error = error_of([] { Communicator::world({.message_limit = 100 + world().rank()}); });
    EXPECT_NE(error.find("message_limit differs between ranks: 100 to"), std::string::npos) << error;
  }
}

TEST(Environment, ASecondOneLeavesMpiToTheFirst) {
  {
    const comm::Environment second;
    EXPECT_FALSE(second.initialised_here());
    EXPECT_EQ(second.thread_level(), comm::ThreadLevel::Multiple);
  }
  EXPECT_TRUE(comm::Environment::active());
  EXPECT_FALSE(comm::Environment::library().empty());
  EXPECT_EQ(comm::Environment::library().find('\n'), std::string::npos);
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
