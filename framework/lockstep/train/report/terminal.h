// Finds out whether a stream goes to a terminal, and its width. Under Open MPI, a rank's stdout is a pseudo-terminal
// even if mpirun's output goes to a file; there the launcher's stdout counts.
#pragma once

#include <cstdio>

namespace lockstep::train {

// Owns a descriptor of the terminal. Never throws; if the system does not tell, there is no terminal.
class Terminal {
 public:
  Terminal() = default;
  explicit Terminal(std::FILE* stream);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&& other) noexcept;
  ~Terminal();

  bool present() const { return fd_ >= 0; }  // there is a terminal; false for TERM=dumb
  int columns() const;                       // the terminal's present width, at most $COLUMNS; 80 if both are unknown

 private:
  int fd_ = -1;
};

}  // namespace lockstep::train
