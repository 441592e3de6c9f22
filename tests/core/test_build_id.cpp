#include "lockstep/host/build_id.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(BuildId, IsTheSameEachTimeAndNotEmpty) {
  EXPECT_FALSE(build_id().empty());
  EXPECT_EQ(build_id(), build_id());
}

}  // namespace
}  // namespace lockstep
