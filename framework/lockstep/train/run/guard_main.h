// The frame of main() for programs without train::Program. An exception that the program does not catch ends all ranks
// within seconds, with one line on stderr that names program, rank and host, and with the exit status of
// docs/reliability.md: 77 for UntrustedError, 2 for CommandLineError, 1 for all others. If all ranks fail alike, one
// rank prints the line; a rank that knows only of another rank's failure prints nothing. MPI may be initialised by
// `body`, by its caller, not at all, or be finalised already.
//
//   int main(int argc, char** argv) {
//     return lockstep::train::guard_main([&] {
//       const comm::Environment mpi;
//       ...
//       return accuracy > 0.9 ? 0 : 1;  // main()'s status; a body that returns nothing ends with 0
//     });
//   }
//
// Destructors between the throw and main() do not run: those of a trainer or a loader could wait for ranks and threads
// that wait for this one. The same holds for exceptions of the program's threads. Call it from main() without a handler
// around it: a handler that catches the exception is responsible for the end of the job.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

namespace lockstep::train {

// The same as an object: during its lifetime, uncaught exceptions end the job. Only one object may exist at a time; it
// replaces std::terminate's handler, and the destructor restores the earlier one. Under nohup, SIGHUP stays ignored
// even if a library has taken it over.
class MainGuard {
 public:
  explicit MainGuard(std::string_view program = {});  // the start of messages; empty: the name of the process
  ~MainGuard();
  MainGuard(const MainGuard&) = delete;
  MainGuard& operator=(const MainGuard&) = delete;

 private:
  std::terminate_handler before_;
};

// Runs `body`, which returns an exit status or nothing, under a MainGuard; returns the exit status of main().
template <class Body>
int guard_main(Body&& body) {
  const MainGuard guard;
  if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
    body();
    return 0;
  } else {
    return body();
  }
}

// Returns the exit status of a program that ends with this error.
int exit_status_of(const std::exception& error);

}  // namespace lockstep::train
