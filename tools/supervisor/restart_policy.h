// Whether a job that ended is started again, and after which pause: twice as long after each failure since the newest
// checkpoint last rose, at most five minutes, and only so often; not at all after two failures soon after the start
// that are alike. Waiting for hosts has no limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lockstep/core/exit_status.h"

namespace lockstep::supervisor {

struct RestartOptions {
  std::int64_t max_restarts = 5;            // failures in a row without a newer checkpoint
  std::chrono::milliseconds backoff{1000};  // the first pause
  bool restart_on_stop = false;             // also where the job was stopped in good order (75)
};

class RestartPolicy {
 public:
  // `newest_step` of the checkpoints there are before the first start; -1: none.
  explicit RestartPolicy(const RestartOptions& options, std::int64_t newest_step = -1)
      : options_(options), newest_step_(newest_step) {}

  struct End {
    int code = 0;                   // as a shell counts it
    std::int64_t newest_step = -1;  // of the checkpoints there are
    bool own = true;                // whether this job wrote it; false: another job was using the folder
    bool asked = false;             // the user ended it
    bool no_hosts = false;          // it could not be started, as hosts are missing
    bool for_host = false;          // it was stopped to start again with more hosts
    std::string error{};            // in the words of a program, if it ended soon after its start
  };
  struct Decision {
    bool restart = false;
    std::chrono::milliseconds pause{0};
    std::string reason{};
  };
  Decision after(const End& end);

 private:
  // Before the n-th try in a row, from 1.
  std::chrono::milliseconds pause(std::int64_t n) const;

  RestartOptions options_;
  std::int64_t newest_step_, failures_ = 0, waits_ = 0;
  int last_code_ = 0;
  std::string last_error_;
};

}  // namespace lockstep::supervisor
