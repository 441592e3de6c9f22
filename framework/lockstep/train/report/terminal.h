// Whether a stream ends at a terminal that a person reads, and how wide it is. Under Open MPI a rank's stdout is a
// pseudo-terminal even where mpirun's own output goes to a file, so there the launcher's stdout is the one that counts.
#pragma once

#include <cstdio>

namespace lockstep::train {

// Holds a descriptor of the terminal. Never throws; where nothing can be learnt, there is no terminal.
class Terminal {
 public:
  Terminal() = default;
  explicit Terminal(std::FILE* stream);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&& other) noexcept;
  ~Terminal();

  bool present() const { return fd_ >= 0; }  // false also for TERM=dumb
  int columns() const;                       // what the terminal says now, at most $COLUMNS; 80 if neither

 private:
  int fd_ = -1;
};

}  // namespace lockstep::train
