#include "lockstep/core/on_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>

namespace lockstep {
namespace {

TEST(OnThreads, EachPartRunsOnceOnAThreadOfItsOwn) {
  std::vector<std::thread::id> ids(4);
  on_threads(ids.size(), [&](std::size_t part) { ids[part] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin() + 1, ids.end()).count(std::thread::id()), 0u);
  EXPECT_FALSE(std::set<std::thread::id>(ids.begin() + 1, ids.end()).contains(ids[0]));
}

TEST(OnThreads, AllPartsEndBeforeTheFirstErrorIsThrown) {
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t part) {
    ++done;
    if (part != 2) throw std::runtime_error("part " + std::to_string(part));
  };
  try {
    on_threads(4, work);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "part 0");
  }
  EXPECT_EQ(done, 4);
  const PartErrors errors = run_on_threads(4, work);
  EXPECT_NO_THROW(errors.rethrow(2));
  EXPECT_THROW(errors.rethrow(3), std::runtime_error);
}

}  // namespace
}  // namespace lockstep
