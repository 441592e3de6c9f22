#include "lockstep/host/address_space.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <new>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::host {
namespace {

constexpr std::size_t kScarce = std::size_t{64} << 20;  // bytes left: the failed allocation may have been as large

std::size_t mebibytes(std::size_t bytes) { return bytes >> 20; }

bool is_lack_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::not_enough_memory;
}

bool is_lack_of_threads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace

std::size_t AddressSpace::left() const {
  if (limit == 0) return std::numeric_limits<std::size_t>::max();
  return limit > used ? limit - used : 0;
}

AddressSpace address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return {.limit = limit.rlim_cur, .used = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))};
}

void use_one_malloc_arena() {
#ifdef __GLIBC__
  if (address_space().limit != 0) mallopt(M_ARENA_MAX, 1);
#endif
}

void check_address_space(const char* what, std::size_t needed) {
  const AddressSpace space = address_space();
  check(space.left() >= needed, "memory",
        "the address space of this process is limited to {} MiB (ulimit -v), of which {} MiB are in use before {}, "
        "which takes about {} MiB; expected a higher limit, or none",
        mebibytes(space.limit), mebibytes(space.used), what, mebibytes(needed));
}

std::string explain(const std::exception& error) {
  std::string text = is_lack_of_memory(error)
                         ? "[memory] out of memory: use a smaller batch, or fewer ranks on this host"
                     : is_lack_of_threads(error) ? "[threads] a thread could not be started"
                                                 : error.what();
  const AddressSpace space = address_space();
  if (space.left() < kScarce && text.find("ulimit -v") == text.npos)
    text += formatted(
        "; the address space of this process is limited to {} MiB (ulimit -v), of which {} MiB are in "
        "use: expected a higher limit, or none",
        mebibytes(space.limit), mebibytes(space.used));
  return text;
}

}  // namespace lockstep::host
