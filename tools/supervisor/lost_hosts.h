// The hosts of a job that cannot be used at present: found by asking all hosts before a start, and asked again while
// the job runs. Asks only hosts that the job's command reaches by ssh. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/supervisor/job_command.h"
#include "tools/supervisor/mpi_traces.h"
#include "tools/supervisor/prober.h"

namespace lockstep::supervisor {

struct LostHostsOptions {
  std::string job{};                      // marks the job's processes (ProbeOptions::job)
  std::chrono::milliseconds rejoin{0};    // time between two questions to the lost hosts while the job runs; 0: none
  std::chrono::milliseconds limit{5000};  // time that a host has for its answer
};

class LostHosts {
 public:
  // Both references must outlive this object.
  LostHosts(const JobCommand& command, const MpiTraces& traces, LostHostsOptions options)
      : command_(command), traces_(traces), options_(std::move(options)) {}

  // Asks all hosts, waits for their answers, and returns the lost ones with reasons: "user@host (no answer within 5
  // s)".
  std::vector<std::string> ask_all();
  const std::vector<std::string>& names() const { return lost_; }  // as Host::login() names them
  // Returns the first lost host that has answered since; empty: none, or the next question is not due. Does not wait.
  std::optional<std::string> returned();
  void stop_asking() { prober_.reset(); }  // the job has ended: drops a question that has no answer yet

 private:
  ProbeOptions probe_options() const;

  const JobCommand& command_;
  const MpiTraces& traces_;
  LostHostsOptions options_;
  std::vector<std::string> lost_;
  std::optional<Prober> prober_;  // the question under way
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace lockstep::supervisor
