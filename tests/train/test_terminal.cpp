#include "lockstep/train/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/train/streams.h"

namespace lockstep::train {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A pseudo-terminal of 33 columns; null where the system has none to give.
class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("COLUMNS");
    unsetenv("OMPI_COMM_WORLD_RANK");
    setenv("TERM", "xterm", 1);
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) GTEST_SKIP() << "no pseudo-terminal here";
    winsize size{};
    size.ws_col = 33;
    ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
    const int slave = open(ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) GTEST_SKIP() << "no pseudo-terminal here";
    stream_.reset(fdopen(slave, "w"));
  }
  void TearDown() override {
    if (master_ >= 0) close(master_);
  }
  int master_ = -1;
  std::unique_ptr<std::FILE, CloseFile> stream_;
};

TEST_F(TerminalTest, KnowsItsWidth) {
  const Terminal terminal(stream_.get());
  EXPECT_TRUE(terminal.present());
  EXPECT_EQ(terminal.columns(), 33);
  setenv("COLUMNS", "22", 1);
  EXPECT_EQ(terminal.columns(), 22);
  setenv("COLUMNS", "44", 1);  // of before it was made narrower
  EXPECT_EQ(terminal.columns(), 33);
  unsetenv("COLUMNS");
}

TEST_F(TerminalTest, ADumbOneIsNone) {
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Terminal(stream_.get()).present());
  unsetenv("TERM");
  EXPECT_FALSE(Terminal(stream_.get()).present());
}

TEST_F(TerminalTest, TheLaunchersPseudoTerminalIsNone) {
  // Nothing above this test is called mpirun, as on a node that mpirun does not run on.
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_FALSE(Terminal(stream_.get()).present());
  unsetenv("OMPI_COMM_WORLD_RANK");
}

TEST(NoTerminal, AFileIsNone) {
  TextStream file;
  const Terminal terminal(file.file());
  EXPECT_FALSE(terminal.present());
  unsetenv("COLUMNS");
  EXPECT_EQ(terminal.columns(), 80);
  setenv("COLUMNS", "44", 1);
  EXPECT_EQ(terminal.columns(), 44);
  unsetenv("COLUMNS");
}

}  // namespace
}  // namespace lockstep::train
