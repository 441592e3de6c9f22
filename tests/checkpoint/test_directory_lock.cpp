#include "lockstep/checkpoint/directory_lock.h"

#include <sys/wait.h>

#include <csignal>

#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::chrono_literals;

class Locking : public InDirectory {
 protected:
  std::string error() const {
    return error_of([&] { DirectoryLock(dir_, 0ms); });
  }
};

TEST_F(Locking, OneAtATimeAndTheOwnerIsNamed) {
  {
    const DirectoryLock lock(dir_, 0ms);
    EXPECT_EQ(lock.warning(), "");
    const std::string message = error();
    for (const std::string& part : {dir_.string(), formatted("process {} on host ", ::getpid()),
                                    std::string("since 20"), std::string("--output")}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
  EXPECT_EQ(error(), "no error") << "it ends with its owner, and the file that stays locks nobody out";
  EXPECT_TRUE(fs::exists(dir_ / ".lock"));
  EXPECT_EQ(error_of([&] { DirectoryLock(dir_ / "missing"); }),
            formatted("[output] {}: read directory: No such file or directory", (dir_ / "missing").string()));
}

TEST_F(Locking, OthersCanAskWhoHoldsIt) {
  EXPECT_EQ(lock_holder(dir_), "") << "there is no file";
  {
    const DirectoryLock lock(dir_, 0ms);
    EXPECT_TRUE(lock_holder(dir_).starts_with(formatted("process {} on host ", ::getpid()))) << lock_holder(dir_);
  }
  EXPECT_EQ(lock_holder(dir_), "") << "the file stays, and nobody holds it";
  EXPECT_EQ(lock_holder(dir_ / "missing"), "");
}

TEST_F(Locking, AFileThatWasRemovedOrReplacedIsNoticed) {
  const DirectoryLock lock(dir_, 0ms);
  EXPECT_TRUE(lock.in_place());
  fs::remove(dir_ / ".lock");
  EXPECT_FALSE(lock.in_place());
  const DirectoryLock other(dir_, 0ms);
  EXPECT_FALSE(lock.in_place());
  EXPECT_TRUE(other.in_place());
}

TEST_F(Locking, AKilledOwnerLocksNobodyOut) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const DirectoryLock lock(dir_, 0ms);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(error().find(formatted("process {} on host ", child)), std::string::npos);
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(error(), "no error");
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace lockstep::checkpoint
