// Flags of ranks that are rows of plain memory here.
#include "lockstep/parallel/exchange/shared_flags.h"

#include <gtest/gtest.h>

#include <array>

#include "lockstep/core/tensor.h"

namespace lockstep {
namespace {

constexpr int kFlags = 2;

class Rows {
 public:
  explicit Rows(int ranks) {
    for (int r = 0; r < ranks; ++r) memory_.push_back(allocate_aligned(parallel::SharedFlags::bytes(kFlags)));
  }
  parallel::SharedFlags of(int rank) const {
    std::vector<std::span<std::byte>> rows;
    for (const AlignedBuffer& m : memory_) rows.emplace_back(m.get(), parallel::SharedFlags::bytes(kFlags));
    return {rows, rank};
  }

 private:
  std::vector<AlignedBuffer> memory_;
};

TEST(SharedFlags, TellsHowFarOthersAre) {
  const Rows rows(2);
  parallel::SharedFlags mine = rows.of(0), other = rows.of(1);
  EXPECT_EQ(other.value(0, 1), 0U);
  mine.raise(1, 7);
  EXPECT_EQ(other.value(0, 1), 7U);
  EXPECT_EQ(other.value(0, 0), 0U);
  EXPECT_TRUE(other.reached(0, 1, 7));
  EXPECT_FALSE(other.reached(0, 1, 8));
  EXPECT_FALSE(other.all_reached(1, 7));
  other.raise(1, 8);
  EXPECT_TRUE(mine.all_reached(1, 7));
}

TEST(SharedFlags, NumbersMayWrap) {
  const Rows rows(1);
  parallel::SharedFlags flags = rows.of(0);
  flags.raise(0, 2);
  EXPECT_TRUE(flags.reached(0, 0, ~std::uint32_t{0} - 3));
  EXPECT_FALSE(flags.reached(0, 0, 3));
}

// Rank 0 is late but alive: that must not hide that rank 1 has failed.
TEST(SharedFlags, AFailureIsSeenBehindARankThatIsLate) {
  const Rows rows(3);
  const parallel::SharedFlags mine = rows.of(2);
  EXPECT_FALSE(mine.all_reached(0, 1));
  rows.of(1).fail();
  EXPECT_THROW(mine.all_reached(0, 1), PeerError);
}

TEST(SharedFlags, WhoGaveWhatItOwedMayFailAfterwards) {
  const Rows rows(2);
  parallel::SharedFlags other = rows.of(1);
  other.raise(0, 1);
  other.fail();
  EXPECT_FALSE(rows.of(0).all_reached(0, 1)) << "rank 0 itself is late";
  rows.of(0).raise(0, 1);
  EXPECT_TRUE(rows.of(0).all_reached(0, 1));
}

TEST(SharedFlags, ARankThatWaitsForOneThatHasLeftIsTold) {
  const Rows rows(3);
  parallel::SharedFlags mine = rows.of(2);
  rows.of(0).raise(0, 1);
  rows.of(1).leave(7, 5, false);
  EXPECT_FALSE(mine.all_reached(0, 1)) << "this rank has not come to it itself, so it does not wait yet";
  mine.raise(0, 1);
  const auto error_of = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const PeerError& error) {
      return std::string("of a peer: ") + error.what();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string said = "[reduction] rank 7 has left after update 5, and this rank waits for it: ";
  EXPECT_TRUE(error_of([&] { mine.all_reached(0, 1); }).starts_with(said));
  EXPECT_TRUE(error_of([&] { mine.awaited(1, 0, 1); }).starts_with(said));
  EXPECT_NO_THROW(mine.check_alive());
  EXPECT_THROW(mine.check_nobody_left(), Error);
  rows.of(0).fail();  // because of it, perhaps
  EXPECT_TRUE(error_of([&] { mine.all_reached(0, 1); }).starts_with(said));
}

TEST(SharedFlags, ARankThatGaveWhatItOwedMayLeave) {
  const Rows rows(2);
  parallel::SharedFlags mine = rows.of(0), other = rows.of(1);
  mine.raise(0, 1);
  other.raise(0, 1);
  other.leave(1, 1, false);
  EXPECT_TRUE(mine.all_reached(0, 1));
  EXPECT_TRUE(mine.awaited(1, 0, 1));
  EXPECT_FALSE(mine.all_reached(0, 2)) << "nobody has come to the next";
  EXPECT_FALSE(mine.all_reached(1, 1)) << "of another flag";
  EXPECT_TRUE(mine.somebody_left());
}

TEST(SharedFlags, ARankThatLeavesByAnErrorIsAPeerThatHasFailed) {
  const Rows rows(2);
  parallel::SharedFlags mine = rows.of(0);
  mine.raise(0, 1);
  rows.of(1).leave(1, 3, true);
  EXPECT_THROW(mine.all_reached(0, 1), PeerError);
}

TEST(SharedFlags, ARankThatLeavesCallsIncompleteSaysWhatToDo) {
  const Rows rows(2);
  parallel::SharedFlags mine = rows.of(0);
  mine.raise(0, 1);
  rows.of(1).leave_incomplete(1, 3);
  rows.of(1).leave(1, 3, false);  // the first counts
  try {
    mine.all_reached(0, 1);
    ADD_FAILURE() << "no error";
  } catch (const PeerError& error) {
    ADD_FAILURE() << "that rank reports no error: " << error.what();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("rank 1 has left after update 3, while later calls were not complete"), std::string::npos);
    EXPECT_NE(message.find("waits for all its handles"), std::string::npos) << message;
  }
}

TEST(SharedFlags, AFailureIsNotTakenForALeave) {
  const Rows rows(2);
  parallel::SharedFlags mine = rows.of(0), other = rows.of(1);
  other.fail();
  other.leave(1, 3, false);
  EXPECT_FALSE(mine.somebody_left());
  EXPECT_THROW(mine.check_alive(), PeerError);
}

}  // namespace
}  // namespace lockstep
