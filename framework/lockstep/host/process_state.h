// The kernel's description of a process of this machine: whether it runs, sleeps or was stopped, and where in the
// kernel it waits. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::host {

struct ProcessState {
  char state = 0;          // R, S, D, T, t, Z, X as in proc(5); 0: there is no such process
  std::int64_t start = 0;  // start time in the kernel's ticks: distinguishes processes that had the same id
  std::string waits_in{};  // the kernel function in which it waits; empty: not known

  bool is_stopped() const { return state == 'T' || state == 't'; }
  bool is_traced() const { return state == 't'; }  // stopped by a debugger, which SIGCONT does not end
  bool is_gone() const { return state == 0 || state == 'Z' || state == 'X'; }
  std::string str() const;  // "is stopped (state T)"
};

// Returns the state of the main thread of process `process`.
ProcessState process_state(int process);

}  // namespace lockstep::host
