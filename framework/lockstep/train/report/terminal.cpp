#include "lockstep/train/report/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

std::string process_file(pid_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();  // an iterator would throw if the process has just ended
  return text.str();
}

pid_t parent_of(pid_t pid) {
  const std::string stat = process_file(pid, "stat");  // "12 (any (name)) S 11 ..."
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 4 > stat.size() ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

bool is_launcher(pid_t pid) {
  std::string name = process_file(pid, "comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  constexpr std::array kLaunchers{"mpirun", "mpiexec", "orterun", "prterun", "oshrun"};
  for (const char* launcher : kLaunchers) {
    if (name == launcher) return true;
  }
  return false;
}

int open_terminal(const fs::path& link) {
  std::error_code error;
  const std::string target = fs::read_symlink(link, error);
  // Opens only a terminal: opening a pipe would keep it alive.
  if (error || (!target.starts_with("/dev/pts/") && !target.starts_with("/dev/tty"))) return -1;
  const int fd = open(target.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && isatty(fd) == 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// Opens the terminal of mpirun; if mpirun runs on another machine, there is none.
int launchers_terminal() {
  for (pid_t pid = getppid(); pid > 1; pid = parent_of(pid)) {
    if (is_launcher(pid)) return open_terminal("/proc/" + std::to_string(pid) + "/fd/1");
  }
  return -1;
}

}  // namespace

Terminal::Terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  const int fd = stream == nullptr ? -1 : fileno(stream);
  if (kind == nullptr || std::strcmp(kind, "dumb") == 0 || fd < 0 || isatty(fd) == 0) return;
  const bool launched = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  fd_ = launched ? launchers_terminal() : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

Terminal::Terminal(Terminal&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Terminal& Terminal::operator=(Terminal&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Terminal::~Terminal() {
  if (fd_ >= 0) close(fd_);
}

int Terminal::columns() const {
  const char* text = std::getenv("COLUMNS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  winsize size{};
  const bool known = fd_ >= 0 && ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const int columns = known ? size.ws_col : wanted > 0 ? wanted : 80;
  // $COLUMNS is from the start of the process: a line wider than the present terminal would wrap with every redraw.
  return wanted > 0 ? std::min(columns, wanted) : columns;
}

}  // namespace lockstep::train
