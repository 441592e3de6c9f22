// The limit on the address space of this process (`ulimit -v`, setrlimit(RLIMIT_AS)). Under such a limit, allocations
// and thread starts fail in libraries; under a very small one, OpenBLAS waits for ever while it is loaded, unless
// before_libraries.h ends the program with one line. Any thread.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace lockstep::host {

struct AddressSpace {
  std::size_t limit = 0, used = 0;  // bytes; limit 0: no limit
  std::size_t left() const;         // bytes; the largest number if there is no limit
};
AddressSpace address_space();

// If there is a limit, makes all threads allocate from one heap. The C library would reserve 64 MiB of addresses or
// more per thread, and the rest would differ from run to run. For programs, before they start threads.
void use_one_malloc_arena();

// Throws Error if fewer than `needed` bytes are left; `what` names their user: "MPI_Init".
void check_address_space(const char* what, std::size_t needed);

// Returns the message of an error in one line. Explains errors of the C++ library for lack of memory or threads, and
// adds the limit if the address space is nearly used up.
std::string explain(const std::exception& error);

}  // namespace lockstep::host
