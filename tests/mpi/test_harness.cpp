// That the harness itself works: a world of the right size, and a directory that all ranks see.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

TEST(Harness, WorldHasConsecutiveRanks) {
  ASSERT_GE(world().size(), 1);
  const auto ranks = world().allgather(std::int32_t{world().rank()});
  for (int i = 0; i < world().size(); ++i) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
  }
}

TEST(Harness, SharedDirectoryIsOneAndVanishes) {
  std::filesystem::path path;
  {
    const SharedDirectory directory;
    path = directory.path();
    if (world().is_root()) {
      std::ofstream(path / "note") << "seen";
    }
    world().barrier();
    std::ifstream file(path / "note");
    std::string text;
    file >> text;
    EXPECT_EQ(text, "seen");
  }
  world().barrier();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Harness, ErrorOfGivesTheMessage) {
  EXPECT_EQ(error_of([] { fail("here", "broken"); }), "[here] broken");
  EXPECT_EQ(error_of([] {}), "no error");
}

}  // namespace
}  // namespace lockstep::test
