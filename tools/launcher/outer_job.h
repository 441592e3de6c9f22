// A job of one process per node, of mpirun or srun, in which each process is a launcher: what its processes agree on
// through MPI before they start the inner job, and how its variables are kept out of the inner job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/launcher/mpirun_line.h"

namespace lockstep::launcher {

// How many processes the job has that this process is one of, as its launcher's variables tell it; 0: none.
int outer_size(const ReadVariable& variable);

// Whether a variable is one that the outer job's launcher made for it. What the user set for Open MPI stays.
bool is_of_outer_job(const std::string& name);
// Removes those variables from this process's environment.
void leave_outer_job();

struct OuterJob {
  int node = 0, nodes = 1;
  std::vector<std::string> addresses{};  // of node 0
  int port = 0;
  std::string secret{};
};
// On all processes of the outer job together; initialises and finalises MPI. `listen` is called on node 0 and returns
// the port at which it listens. Throws Error where several of the processes are on one host.
OuterJob agree_in_outer_job(const std::function<int()>& listen);

}  // namespace lockstep::launcher
