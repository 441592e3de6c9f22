#include "lockstep/core/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep {

void open_standard_streams() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = open("/dev/null", O_RDWR);  // inherited by children, as the three are
    check(opened >= 0, "start", "descriptor {} is closed, and /dev/null cannot be opened in its place: {}", file,
          std::strerror(errno));
    if (opened == file) continue;
    const bool moved = dup2(opened, file) == file;
    close(opened);
    check(moved, "start", "descriptor {} is closed, and cannot be opened: {}", file, std::strerror(errno));
  }
}

}  // namespace lockstep
