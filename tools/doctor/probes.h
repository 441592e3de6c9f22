// Before a job: one process on each of its hosts, started through ssh as mpirun's daemons are, that makes the checks
// and talks to the others through this process (preflight::LineExchange at the far end). One thread.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/preflight/finding.h"

namespace lockstep::tools {

struct ProbeOptions {
  std::vector<std::string> ssh{};                    // words before the host's name: "ssh", "-p", "2222"
  int port = 0;                                      // of ssh, for messages; 0: its own
  std::string program{};                             // this one, at the same path on each host
  std::chrono::seconds login_limit{20}, limit{120};  // for all logins; for each exchange between the hosts
};

struct ProbedHost {
  std::string login;         // as ssh takes it
  nlohmann::json subject{};  // what its process is told to look at
};

struct ProbeReport {
  std::vector<preflight::Finding> findings{};  // of logins that failed, then those of the checks
  bool all_answered = false;
};

// The checks are made among the hosts that can be logged in to.
ProbeReport probe_hosts(const ProbeOptions& options, const std::vector<ProbedHost>& hosts);

}  // namespace lockstep::tools
