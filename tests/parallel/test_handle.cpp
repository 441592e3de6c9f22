// The work of a handle on the reduction that it drives, which is one of the test's here.
#include "lockstep/parallel/exchange/handle.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lockstep {
namespace {

// Complete after some steps; then it throws, if it is to.
struct Steps : parallel::Reduction {
  int left = 0, given_up = 0;
  bool fails = false;

  explicit Steps(int steps) : left(steps) {}
  bool advance() override {
    --left;
    return true;
  }
  bool complete() override {
    if (left <= 0 && fails) throw std::runtime_error("a rank has failed");
    return left <= 0;
  }
  void give_up() noexcept override { ++given_up; }
};

TEST(Handle, OfNothingIsComplete) {
  parallel::Handle handle;
  EXPECT_FALSE(handle.active());
  EXPECT_TRUE(handle.test());
  handle.wait();
}

TEST(Handle, TestDrivesByOneStepAndWaitToTheEnd) {
  const auto steps = std::make_shared<Steps>(3);
  parallel::Handle handle(steps);
  EXPECT_FALSE(handle.test());
  EXPECT_EQ(steps->left, 2);
  handle.wait();
  EXPECT_EQ(steps->left, 0);
  EXPECT_FALSE(handle.active());
}

TEST(Handle, IsOfNothingAfterAnError) {
  for (const bool by_test : {false, true}) {
    const auto steps = std::make_shared<Steps>(1);
    steps->fails = true;
    parallel::Handle handle(steps);
    EXPECT_THROW(by_test ? static_cast<void>(handle.test()) : handle.wait(), std::runtime_error);
    EXPECT_FALSE(handle.active());
  }
}

TEST(Handle, WaitsWhenItIsDestroyedOrReplaced) {
  const auto first = std::make_shared<Steps>(5), second = std::make_shared<Steps>(4);
  {
    parallel::Handle handle(first);
    handle = parallel::Handle(second);
    EXPECT_EQ(first->left, 0);
    EXPECT_EQ(second->left, 4);
  }
  EXPECT_EQ(second->left, 0);
  EXPECT_EQ(first->given_up + second->given_up, 0);
}

TEST(Handle, AnErrorWhileItIsDestroyedStaysInside) {
  const auto steps = std::make_shared<Steps>(2);
  steps->fails = true;
  EXPECT_NO_THROW({ const parallel::Handle handle(steps); });
  EXPECT_EQ(steps->left, 0);
}

TEST(Handle, GivesUpWhileAnExceptionPasses) {
  const auto steps = std::make_shared<Steps>(2);
  EXPECT_THROW(
      {
        const parallel::Handle handle(steps);
        throw std::runtime_error("in between");
      },
      std::runtime_error);
  EXPECT_EQ(steps->given_up, 1);
  EXPECT_EQ(steps->left, 2);
}

TEST(Handle, AMovedOneHasNothingToDo) {
  const auto steps = std::make_shared<Steps>(2);
  parallel::Handle handle(steps);
  {
    parallel::Handle other = std::move(handle);
    EXPECT_TRUE(other.active());
    handle = std::move(other);
  }
  EXPECT_EQ(steps->left, 2);
  handle.wait();
}

}  // namespace
}  // namespace lockstep
