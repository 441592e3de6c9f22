// Asks hosts, all at once and in the way mpirun reaches them (agent and arguments of plm_rsh), whether they can be
// used, and removes the remains of earlier starts of the job there: processes with OMPI_LOCKSTEP_JOB=JOB in their
// environment, and files that Open MPI kept for them. Nothing is removed on this machine, whatever name it was given:
// the job itself may run on it. It never waits for a host longer than its limit. One thread; nothing else may reap
// children meanwhile.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/supervisor/process.h"

namespace lockstep::supervisor {

// Tells machines apart by the processes that are seen there: those of one boot of a kernel, in one namespace of
// processes. Two containers of one kernel are two machines.
std::string processes_here();

struct ProbeOptions {
  std::vector<std::string> agent{"ssh"};  // words before the host's name
  std::string job{};
  std::set<std::string> traces{};         // Open MPI's numbers of earlier starts (mpi_traces.h)
  std::chrono::milliseconds limit{5000};  // for each host, and so for all
  std::string here = processes_here();    // where nothing is removed
};

struct ProbeResult {
  std::string host;
  std::string reason;  // empty: the host answered
};

class Prober {
 public:
  Prober(const ProbeOptions& options, const std::vector<std::string>& hosts);

  // Whether every host has answered or had its time. Does not wait.
  bool done();
  // Waits until done().
  std::vector<ProbeResult> results();

 private:
  struct Probe {
    std::string host;
    std::unique_ptr<Process> process;
    std::string output{}, reason{};
    bool over = false;
  };
  void look_at(Probe& probe);

  std::chrono::steady_clock::time_point deadline_;
  std::chrono::milliseconds limit_;
  std::vector<Probe> probes_;
};

}  // namespace lockstep::supervisor
