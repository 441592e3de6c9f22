// For tests/mpi/test_*.cpp: each is one program, run at 1, 2, 3 and 4 ranks; use TEST() as ever. main.cpp initialises
// MPI, makes a test that fails on one rank fail on all, prints rank 0's output and the failures of others, and ends the
// job when a test hangs (LOCKSTEP_TEST_SECONDS, 200 by default). All ranks run the same tests: GTEST_SKIP on
// world().size() alone.
#pragma once

#include <filesystem>
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

}  // namespace lockstep::test
