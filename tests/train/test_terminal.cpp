#include "lockstep/train/report/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
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
    const int slave = open_pair(master_, 33);
    if (slave < 0) GTEST_SKIP() << "no pseudo-terminal here";
    stream_.reset(fdopen(slave, "w"));
  }
  // The end of a new pseudo-terminal that programs see; -1 where there is none.
  static int open_pair(int& master, unsigned short columns) {
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return -1;
    winsize size{};
    size.ws_col = columns;
    if (ioctl(master, TIOCSWINSZ, &size) != 0) return -1;
    return open(ptsname(master), O_RDWR | O_NOCTTY);
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

// The result of `body` in a child process of this name.
int in_process(const char* name, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(prctl(PR_SET_NAME, name) == 0 ? body() : 99);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

// The columns that a rank finds below a process `launcher`, whose stdout is `file`, and one whose name looks like the
// fields that follow a name in /proc/PID/stat; 0: no terminal.
int columns_below(const char* launcher, int file, std::FILE* own) {
  return in_process(launcher, [&] {
    if (dup2(file, STDOUT_FILENO) < 0) return 97;
    return in_process("x) S 1 1 (y", [&] {
      return in_process("rank", [&] {
        setenv("OMPI_COMM_WORLD_RANK", "0", 1);
        const Terminal terminal(own);
        return terminal.present() ? terminal.columns() : 0;
      });
    });
  });
}

TEST_F(TerminalTest, TheOneBehindTheLauncherIsFoundThroughProc) {
  int master = -1;
  const int launchers = open_pair(master, 55);
  ASSERT_GE(launchers, 0);
  for (const char* launcher : {"mpirun", "mpiexec", "orterun", "prterun"})
    EXPECT_EQ(columns_below(launcher, launchers, stream_.get()), 55) << launcher;
  EXPECT_EQ(columns_below("mpirun2", launchers, stream_.get()), 0) << "another program";
  TextStream file;
  EXPECT_EQ(columns_below("mpirun", fileno(file.file()), stream_.get()), 0) << "its output goes into a file";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(columns_below("mpirun", ends[1], stream_.get()), 0) << "its output goes into a pipe";
  for (const int descriptor : {ends[0], ends[1], launchers, master}) close(descriptor);
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
