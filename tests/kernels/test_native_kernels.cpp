#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep {
namespace {

// Every machine has the slowest level of its kind of processor.
std::string lowest() { return std::string(kernels::native::levels().front().name); }

TEST(NativeKernels, TheLowestLevelIsEverywhereAndTheChosenLevelIsOneOfThem) {
  ASSERT_NE(kernels::native_kernels(lowest()), nullptr);
  EXPECT_EQ(kernels::native_kernels("mmx"), nullptr);
  EXPECT_EQ(&kernels::native_kernels(), kernels::native_kernels(kernels::native_level()));
}

TEST(NativeKernels, TheBestSupportedLevelUnlessTheEnvironmentNamesOne) {
  if (const char* wanted = std::getenv("LOCKSTEP_ISA")) {
    EXPECT_EQ(kernels::native_level(), wanted);
  } else {
    std::string_view best;
    for (const kernels::native::Level& level : kernels::native::levels()) best = level.supported ? level.name : best;
    EXPECT_EQ(kernels::native_level(), best);
  }
}

// In a process of its own, because the choice is made once.
TEST(NativeKernelsDeathTest, AnUnknownLevelIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [](const char* wanted) {
    setenv("LOCKSTEP_ISA", wanted, 1);
    try {
      kernels::native_kernels();
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::exit(3);
    }
    std::fputs(std::string(kernels::native_level()).c_str(), stderr);
    std::exit(0);
  };
  EXPECT_EXIT(ask("sse9"), ::testing::ExitedWithCode(3),
              "LOCKSTEP_ISA. is \"sse9\", expected a level that this machine supports: .*" + lowest());
  EXPECT_EXIT(ask(lowest().c_str()), ::testing::ExitedWithCode(0), "^" + lowest() + "$");
}

}  // namespace
}  // namespace lockstep
