// A failure on one rank becomes the same failure on all, and ranks started differently are told apart.
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "lockstep/comm/agreement.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

TEST(Agree, NoErrorIsNoError) {
  comm::agree(world(), std::nullopt);
  EXPECT_EQ(comm::collectively(world(), [] { return world().rank() * 2; }), world().rank() * 2);
}

TEST(Agree, OneRanksErrorReachesAll) {
  const int failing = world().size() - 1;
  const std::string error = error_of([&] {
    comm::agree(world(), world().rank() == failing ? std::optional<std::string>("[data] disk full") : std::nullopt);
  });
  EXPECT_NE(error.find("[data] disk full"), std::string::npos) << error;
  if (world().size() > 1) {
    EXPECT_NE(error.find("rank " + std::to_string(failing) + " on host " + world().topology().host(failing)),
              std::string::npos)
        << error;
  }
  expect_shared(error);
}

TEST(Agree, TheLowestOfSeveralSpeaks) {
  if (world().size() < 3) GTEST_SKIP() << "one rank must stay whole";
  const std::string error = error_of([] {
    comm::collectively(world(), [] {
      if (world().rank() > 0) throw std::runtime_error("broken " + std::to_string(world().rank()));
    });
  });
  EXPECT_NE(error.find("rank 1 on host"), std::string::npos) << error;
  EXPECT_NE(error.find("broken 1"), std::string::npos) << error;
  EXPECT_NE(
      error.find(std::to_string(world().size() - 1) + " of " + std::to_string(world().size()) + " ranks failed in all"),
      std::string::npos)
      << error;
  expect_shared(error);
}

TEST(Agree, ARankThatFailedSpeaksBeforeOnesThatOnlyKnowOfIt) {
  const int size = world().size(), failing = size - 1;
  const std::string error = error_of([&] {
    comm::collectively(world(), [&] {
      if (world().rank() != failing) throw PeerError("another rank has failed");
      throw Error("[data] disk full");
    });
  });
  EXPECT_NE(error.find("[data] disk full"), std::string::npos) << error;
  EXPECT_EQ(error.find("another rank"), std::string::npos) << error;
  if (size > 1) {
    EXPECT_NE(error.find("rank " + std::to_string(failing) + " on host"), std::string::npos) << error;
  }
  expect_shared(error);
}

TEST(Agree, OnesThatOnlyKnowOfAFailureSpeakIfNoOtherDoes) {
  const std::string error = error_of([] {
    comm::collectively(world(), [] {
      if (world().rank() == 0) throw PeerError("another rank has failed");
    });
  });
  EXPECT_NE(error.find("rank 0 on host"), std::string::npos) << error;
  EXPECT_NE(error.find("another rank has failed"), std::string::npos) << error;
  expect_shared(error);
}

TEST(Agree, WhatAllRanksFindIsNobodysInParticular) {
  EXPECT_EQ(error_of([] { comm::collectively(world(), [] { throw std::runtime_error("[options] --lr is -1"); }); }),
            "[options] --lr is -1");
}

TEST(Agree, SomethingThatIsNoExceptionIsToldToo) {
  const std::string error = error_of([] { comm::collectively(world(), [] { throw 7; }); });
  EXPECT_NE(error.find("not std::exception"), std::string::npos) << error;
}

TEST(RankZeroFirst, OthersFindWhatRankZeroMade) {
  const SharedDirectory directory;
  const auto file = directory.path() / "download";
  const bool made_it = comm::rank_zero_first(world(), [&] {
    if (std::filesystem::exists(file)) {
      return false;
    }
    std::ofstream(file) << "data";
    return true;
  });
  EXPECT_EQ(made_it, world().is_root());
}

TEST(RankZeroFirst, ItsFailureKeepsOthersFromRunning) {
  int runs = 0;
  const std::string error = error_of([&] {
    comm::rank_zero_first(world(), [&] {
      ++runs;
      fail("fetch", "no network");
    });
  });
  EXPECT_NE(error.find("[fetch] no network"), std::string::npos) << error;
  EXPECT_EQ(runs, world().is_root() ? 1 : 0);
  expect_shared(error);
}

TEST(RankZeroFirst, AFailureOfAnotherReachesAll) {
  const int failing = world().size() - 1;
  const std::string error = error_of(
      [&] { comm::rank_zero_first(world(), [&] { check(world().rank() != failing, "unpack", "no space"); }); });
  EXPECT_NE(error.find("[unpack] no space"), std::string::npos) << error;
  expect_shared(error);
}

TEST(CheckSame, NamesWhoDiffersAndHow) {
  comm::check_same(world(), "options", "--lr 0.1\n--epochs 3");
  if (world().size() == 1) {
    return;
  }
  const int odd_one = world().size() - 1;
  const std::string error = error_of([&] {
    comm::check_same(world(), "options",
                     world().rank() == odd_one ? "--lr 0.1\n--epochs 4\n" : "--lr 0.1\n--epochs 3\n");
  });
  EXPECT_NE(error.find("options must be the same"), std::string::npos) << error;
  EXPECT_NE(error.find("rank 0 (host " + world().host() + ") has '--epochs 3'"), std::string::npos) << error;
  EXPECT_NE(error.find("rank " + std::to_string(odd_one) + " (host " + world().host() + ") has '--epochs 4'"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("from rank 0: " + std::to_string(odd_one)), std::string::npos) << error;
  expect_shared(error);
}

TEST(CheckSame, SeesAMissingEndAndCutsLongTexts) {
  if (world().size() == 1) {
    return;
  }
  const bool first = world().is_root();
  std::string error = error_of([&] { comm::check_same(world(), "classes", first ? "cat\ndog" : "cat"); });
  EXPECT_NE(error.find("has 'dog', rank 1 "), std::string::npos) << error;
  EXPECT_NE(error.find("has no further line"), std::string::npos) << error;
  // In one long line, what differs is shown, not how it begins.
  std::string line(900, '-');
  line += first ? "seed=1" : "seed=2";
  error = error_of([&] { comm::check_same(world(), "config", line); });
  EXPECT_NE(error.find("---seed=1' (906 bytes)"), std::string::npos) << error;
  EXPECT_NE(error.find("---seed=2' (906 bytes)"), std::string::npos) << error;
  error = error_of([&] { comm::check_same(world(), "hash", std::string(5000, first ? 'a' : 'b')); });
  EXPECT_NE(error.find("(5000 bytes)"), std::string::npos) << error;
  EXPECT_LT(error.size(), 1500U);
  expect_shared(error);
}

}  // namespace
}  // namespace lockstep::test
