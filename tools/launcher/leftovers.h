// The remains of a job on this machine when a piece of it is killed: processes, and files of Open MPI. One per process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>

#include "tools/launcher/say.h"
#include "tools/supervisor/mpi_traces.h"

namespace lockstep::launcher {

class Leftovers {
 public:
  // From now on orphans below this process become its children.
  Leftovers();

  // To be called often while the job runs: learns its files now and then.
  void look();
  // The job has ended: ends its processes here, reaps all children, and removes its files. Says which processes do not
  // end.
  void clear(const Say& say);

 private:
  using Clock = std::chrono::steady_clock;

  supervisor::MpiTraces traces_;
  Clock::time_point began_ = Clock::now(), next_ = began_;
};

// Sends a signal to the ranks on this machine below this process: the processes that mpirun or its daemon started, not
// those that a rank started itself.
void signal_ranks(int number);

// Asks the ranks on this machine to end, each once, those too that mpirun or its daemon starts later. Of one job.
class EndRequest {
 public:
  // SIGTERM to the ranks that have not had it from here.
  void send();
  // Whether it is to be sent again: it was sent, a second ago or more.
  bool due() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::set<pid_t> asked_;
  std::optional<Clock::time_point> sent_;
};

}  // namespace lockstep::launcher
