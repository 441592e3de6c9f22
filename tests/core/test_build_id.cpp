#include "lockstep/host/build_id.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(BuildId, IsTheSameEachTimeAndNotEmpty) {
  EXPECT_FALSE(host::build_id().empty());
  EXPECT_EQ(host::build_id(), host::build_id());
}

}  // namespace
}  // namespace lockstep
