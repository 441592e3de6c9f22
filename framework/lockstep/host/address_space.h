// The limit on the address space of this process (`ulimit -v`, setrlimit(RLIMIT_AS)). Under such a limit, allocations
// and thread starts fail in libraries; under a very small one, a library hangs while it is loaded. A program that links
// this code ends with a one-line message if the limit is below kLeastAddressSpace. Any thread.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace lockstep::host {

// Bytes. With less, OpenBLAS 0.3.21 waits for ever for its memory while it is loaded.
inline constexpr std::size_t kLeastAddressSpace = std::size_t{256} << 20;

struct AddressSpace {
  std::size_t limit = 0, used = 0;  // bytes; limit 0: no limit
  std::size_t left() const;         // bytes; the largest number if there is no limit
};
AddressSpace address_space();

// Returns whether a process with less than kLeastAddressSpace ends before libraries are initialised: true if Lockstep
// is linked into the program, false if Lockstep is a shared library.
bool refuses_at_start();

// If there is a limit, makes all threads allocate from one heap. The C library would reserve 64 MiB of addresses or
// more per thread, and the rest would differ from run to run. For programs, before they start threads.
void use_one_malloc_arena();

// Throws Error if fewer than `needed` bytes are left; `what` names their user: "MPI_Init".
void check_address_space(const char* what, std::size_t needed);

// Returns the message of an error in one line. Explains errors of the C++ library for lack of memory or threads, and
// adds the limit if the address space is nearly used up.
std::string explain(const std::exception& error);

}  // namespace lockstep::host
