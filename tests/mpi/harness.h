// For tests/mpi/test_*.cpp: the tests of each are run at 1, 2, 3 and 4 ranks, in a job of their own (--source=test_X);
// use TEST() as ever. main.cpp initialises MPI, makes a test that fails on one rank fail on all, prints rank 0's output
// and the failures of others, and ends the job when a test hangs (LOCKSTEP_TEST_SECONDS, 200 by default). All
// ranks run the same tests: GTEST_SKIP on world().size() alone.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"
#include "tests/messages.h"

namespace lockstep::test {

// The communicator of all ranks of the test program.
comm::Communicator& world();

// A new empty directory, the same on all ranks, removed at the end. Construct and destroy on all ranks together.
class SharedDirectory {
 public:
  SharedDirectory();
  ~SharedDirectory();
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

using lockstep::error_of;

inline bool is_last() { return world().rank() == world().size() - 1; }

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

// Every rank got the same text.
inline void expect_shared(const std::string& text) {
  for (const std::string& other : world().allgather_strings(text)) EXPECT_EQ(other, text);
}

}  // namespace lockstep::test
