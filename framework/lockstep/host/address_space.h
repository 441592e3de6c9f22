// A limit on the address space of this process (`ulimit -v`, setrlimit(RLIMIT_AS)), which libraries meet in their own
// ways: allocations and threads that fail, and, where it is far too small, a library that never comes to its end when
// it is loaded. A program that uses this ends with one line where the limit is below kLeastAddressSpace. Any thread.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace lockstep::host {

// With less OpenBLAS (0.3.21) waits for ever for its memory while it is loaded.
inline constexpr std::size_t kLeastAddressSpace = std::size_t{256} << 20;

struct AddressSpace {
  std::size_t limit = 0, used = 0;  // bytes; limit 0: there is none
  std::size_t left() const;         // the largest number where there is no limit
};
AddressSpace address_space();

// Whether a process with less than kLeastAddressSpace ends before libraries are initialised; not where this one is a
// shared library itself.
bool refuses_at_start();

// Where there is a limit: one heap for all threads from now on. The C library would reserve 64 MiB of addresses and
// more for each, and what is left for others would differ from run to run. For programs, before they start threads.
void spare_address_space();

// Throws Error if less than `needed` is left; `what` needs it: "MPI_Init".
void check_address_space(const char* what, std::size_t needed);

// What an error says, in one line. One of the C++ library for lack of memory or threads says so in plain words, and any
// that comes when the address space is all but used up names the limit.
std::string explain(const std::exception& error);

}  // namespace lockstep::host
