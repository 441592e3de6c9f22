// The lifetime of MPI. An Environment initialises MPI unless the caller has done so, and finalises MPI only if it has
// initialised it; without mpirun the process is a world of one rank. Construct it once, early, in the main thread. If a
// launcher started several processes that cannot see each other, it throws lockstep::Error with the remedy in one
// line.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::comm {

// MPI's thread support, in the order MPI_THREAD_SINGLE .. MPI_THREAD_MULTIPLE.
enum class ThreadLevel : std::uint8_t { Single, Funneled, Serialized, Multiple };

const char* name_of(ThreadLevel level);

class Environment {
 public:
  explicit Environment(ThreadLevel wanted = ThreadLevel::Multiple);
  // Waits for all ranks and finalises MPI, except during stack unwinding: MPI_Finalize would wait for ranks that wait
  // for this one. The main function of the program must then end with abort_job().
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  bool initialised_here() const { return initialised_here_; }
  // Returns the level in force; it is lower than wanted if the caller initialised MPI with a lower one.
  ThreadLevel thread_level() const { return thread_level_; }

  // Returns the level in force without an Environment, if the caller has initialised MPI.
  static ThreadLevel current_thread_level();

  // Returns whether MPI may be called now: it is initialised and not finalised.
  static bool active();
  // Returns this process's rank in the job, from MPI or, if MPI is not running, from the launcher's variables; -1:
  // unknown. Allocates no memory.
  static int world_rank();
  // Returns the first line of the MPI library's description, such as "Open MPI v4.1.4, package: ...".
  static std::string library();

 private:
  void start(ThreadLevel wanted);
  static void refuse_scattered_singletons();

  bool initialised_here_ = false;
  ThreadLevel thread_level_ = ThreadLevel::Single;
  int exceptions_at_start_ = 0;
};

// Ends this process with exit status `code` after `seconds`, for a process that has failed: also if it is blocked, for
// example by a stream without a reader or a launcher that does not answer. Uses SIGALRM.
void end_in_time(int code, unsigned seconds);

// Ends every rank of the job with status `code` (1 to 255), or this process if MPI is not running. Flushes stdout and
// stderr first, and gives the launcher 200 ms to pass them on. Call it last in main() after an error: only MPI_Abort
// leaves no rank waiting. If flushing or MPI_Abort does not return, SIGALRM ends this process with `code` after five
// seconds.
[[noreturn]] void abort_job(int code);

}  // namespace lockstep::comm
