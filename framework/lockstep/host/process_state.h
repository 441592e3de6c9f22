// What the kernel says about a process of this machine: whether it runs, sleeps or was stopped, and where in the
// kernel.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::host {

struct ProcessState {
  char state = 0;          // R, S, D, T, t, Z, X as in proc(5); 0: there is no such process
  std::int64_t start = 0;  // when it began, in the kernel's ticks: tells it from a later one of the same number
  std::string waits_in{};  // the kernel's function, where that may be read

  bool is_stopped() const { return state == 'T' || state == 't'; }
  bool is_traced() const { return state == 't'; }  // stopped by a debugger, which SIGCONT does not end
  bool is_gone() const { return state == 0 || state == 'Z' || state == 'X'; }
  std::string str() const;  // "is stopped (state T)"
};

// Of its main thread.
ProcessState process_state(int process);

}  // namespace lockstep::host
