// Starts a training job and starts it again from its newest checkpoint until it is done, on the hosts that answer. It
// needs to see the job's --output, which it shares with no other supervisor, and nothing of the job survives on this
// machine when run() returns. One per process, in its main thread.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "tools/supervisor/console.h"
#include "tools/supervisor/job_command.h"
#include "tools/supervisor/lost_hosts.h"
#include "tools/supervisor/mpi_traces.h"
#include "tools/supervisor/output_folder.h"
#include "tools/supervisor/restart_policy.h"
#include "tools/supervisor/signals.h"

namespace lockstep::supervisor {

struct SupervisorOptions {
  std::string output{};  // the job's folder
  RestartOptions restart{};
  std::int64_t min_ranks = 1;           // with fewer it waits for hosts
  std::chrono::milliseconds rejoin{0};  // between two looks for lost hosts while the job runs; 0: only before a start
  std::chrono::seconds start_limit{300};
  std::chrono::milliseconds probe_limit{5000};
};

class Supervisor {
 public:
  Supervisor(JobCommand command, SupervisorOptions options);

  // Until the job is done or given up. Returns the last start's exit code.
  int run();

 private:
  struct Placement {
    JobCommand::Change change{};
    std::string description{};
    std::string problem{};  // the reason why the job cannot be started so
  };
  using Newest = OutputFolder::Newest;

  void check_batch();
  std::optional<Newest> known_newest();  // empty: the file system does not answer
  Newest newest() { return known_newest().value_or(Newest{}); }
  Placement place();
  bool host_is_back();
  RestartPolicy::End start(const Placement& placement, std::int64_t number);
  RestartPolicy::End start_job(const Placement& placement, std::int64_t number);
  void note_run();
  bool is_estranged();
  bool pause(std::chrono::milliseconds time);
  void end_leftovers();

  JobCommand command_;
  SupervisorOptions options_;
  OutputFolder output_;
  std::string id_;            // marks the job's processes on all hosts
  bool fewer_ranks_ = false;  // may train with fewer, as the global batch stays
  Console console_;
  std::shared_ptr<spdlog::logger> log_;
  Signals signals_;
  MpiTraces traces_;
  Newest first_;               // the newest checkpoint before the first start
  bool has_progress_ = false;  // a newer one has been seen
  RestartPolicy policy_;
  LostHosts lost_;
};

}  // namespace lockstep::supervisor
