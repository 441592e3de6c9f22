// MPI's lifetime. An Environment initialises MPI unless that is done already, and finalises it only if it initialised
// it; without mpirun the process is a world of one rank. Construct it once, early, in the main thread; it throws
// lockstep::Error with one line that says what to do when a launcher started several processes that cannot see each
// other.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::comm {

// What MPI allows of threads, in the order of MPI_THREAD_SINGLE .. MPI_THREAD_MULTIPLE.
enum class ThreadLevel : std::uint8_t { Single, Funneled, Serialized, Multiple };

const char* name_of(ThreadLevel level);

class Environment {
 public:
  explicit Environment(ThreadLevel wanted = ThreadLevel::Multiple);
  // Leaves MPI running when an exception is passing through: MPI_Finalize would wait for ranks that wait for this one.
  // The program's main then ends with abort_job.
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  bool initialised_here() const { return initialised_here_; }
  // The level that is in force, which a caller that initialised MPI may have set lower than wanted.
  ThreadLevel thread_level() const { return thread_level_; }

  // The same without an Environment: the caller may have initialised MPI.
  static ThreadLevel current_thread_level();

  // Whether MPI calls are legal now: initialised and not yet finalised.
  static bool active();
  // This process's rank among all of the job: MPI's, or the launcher's word where MPI is not running; -1: unknown.
  // Allocates nothing.
  static int world_rank();
  // First line of the MPI library's description, such as "Open MPI v4.1.4, package: ...".
  static std::string library();

 private:
  void start(ThreadLevel wanted);
  static void refuse_scattered_singletons();

  bool initialised_here_ = false;
  ThreadLevel thread_level_ = ThreadLevel::Single;
  int exceptions_at_start_ = 0;
};

// For a process that has failed: it ends with exit status `code` after that many seconds, whatever it does until then,
// even where a stream has no reader or the launcher does not answer. Takes SIGALRM over.
void end_in_time(int code, unsigned seconds);

// Ends every rank of the job with `code` (1 to 255); without MPI, this process. Flushes stdout and stderr first. The
// last line of a program's main after an error: MPI_Abort is the one way out that leaves no rank waiting. Where
// flushing or MPI_Abort does not return, SIGALRM ends this process with `code` after five seconds.
[[noreturn]] void abort_job(int code);

}  // namespace lockstep::comm
