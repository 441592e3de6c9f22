// The frame of main() in a program of one's own. An exception that no code of the program catches ends all ranks within
// seconds, with one line on stderr that names program, rank and host, and with the exit status of docs/reliability.md:
// 77 for UntrustedError, 2 for CommandLineError, 1 for all others. The line comes once where all ranks fail alike, and
// a rank that knows only of another rank's failure leaves it to that rank. MPI may be initialised by `body`, by its
// caller, by nobody, or be finalised already.
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
// that wait for this one. The same holds for exceptions of threads that the program started. Call it from main(), with
// no handler around it: a handler that catches the exception decides itself what becomes of the job.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

namespace lockstep::train {

// The same as an object: as long as it lives, exceptions that nobody catches end the job. One at a time; it replaces
// std::terminate's handler, and puts the one before back.
class MainGuard {
 public:
  explicit MainGuard(std::string_view program = {});  // as messages begin; empty: the name of the process
  ~MainGuard();
  MainGuard(const MainGuard&) = delete;
  MainGuard& operator=(const MainGuard&) = delete;

 private:
  std::terminate_handler before_;
};

// Runs `body`, which returns an exit status or nothing.
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

// What a program ends with after this error.
int exit_status_of(const std::exception& error);

}  // namespace lockstep::train
