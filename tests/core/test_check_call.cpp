// A failed system call's reason is the one that the call left, not an older one.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

std::string message_of_a_file_that_is_missing() {
  errno = EDOM;
  try {
    check_call(::open("/nonexistent/file", O_RDONLY) >= 0, "core", "cannot open {}", "the file");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(CheckCall, TellsTheReasonOfTheCallItself) {
  EXPECT_EQ(message_of_a_file_that_is_missing(), "[core] cannot open the file: No such file or directory");
}

TEST(CheckCall, IsSilentAfterACallThatSucceeded) {
  EXPECT_NO_THROW(check_call(::fcntl(0, F_GETFD) >= -1, "core", "cannot happen"));
}

}  // namespace
}  // namespace lockstep
