// One start of the supervised command, until it has ended: its output is passed on to the supervisor's streams, signals
// that come meanwhile are passed on to it, and a job that shows no sign of life in its start limit is ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/launch/mpirun_kind.h"
#include "tools/supervisor/console.h"
#include "tools/supervisor/signals.h"

namespace lockstep::supervisor {

struct JobOptions {
  std::vector<std::string> words{};
  std::map<std::string, std::string> variables{};
  std::filesystem::path output{};         // the folder that it writes to
  std::chrono::seconds start_limit{300};  // until it has written something there, or printed something; 0: any time
  launch::MpirunKind launcher = launch::MpirunKind::None;
  std::function<bool()>
      wants_stop{};  // called a few times a second once the job has started: whether to stop it in good order
  std::function<void()> look{};  // called now and then while it runs, and once more when it has just ended
};

struct JobEnd {
  int status = 0;          // of wait()
  bool asked = false;      // the user wanted the end
  bool stopped = false;    // wants_stop asked for the end
  std::string failure{};   // the rank that failed, as stderr tells
  std::string words{};     // a program's message about its own error
  bool lost_host = false;  // mpirun says so; that of Open MPI 5.0.7 ends with 0 then
  double seconds = 0;
};

// A job is asked to stop in good order by SIGUSR2, which mpirun and srun hand on to the ranks, while SIGTERM would be
// their end; a job that has written nothing in its folder yet, and so may not listen, gets it when it has. A second
// request ends it, a third kills the launcher. Hydra hands SIGTERM on and would die of SIGUSR2: it is asked by SIGTERM,
// and a second request kills it.
JobEnd run_job(const JobOptions& options, Signals& signals, Console& console);

}  // namespace lockstep::supervisor
