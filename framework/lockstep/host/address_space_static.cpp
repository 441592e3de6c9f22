// For a program that links this library: checks the limit before the constructors of libraries run.
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "lockstep/host/address_space.h"

namespace lockstep::host {
namespace {

// Uses system calls alone: nothing is initialised yet.
void refuse_least() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastAddressSpace) return;
  constexpr const char* kText =
      "lockstep: [memory] the address space of this process is limited to less than 256 MiB (ulimit -v), with which "
      "its libraries cannot be loaded; expected a higher limit, or none\n";
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, kText, std::strlen(kText));  // a failed write cannot be reported
  _exit(1);
}

__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)() = refuse_least;

}  // namespace

bool refuses_at_start() { return true; }

}  // namespace lockstep::host
