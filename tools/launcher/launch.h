// `lockstep launch`: starts a program on the nodes of a job, in one of four ways: on this node; on several nodes on
// each of which the same command is called (node 0's launcher runs mpirun, the others its daemons); on hosts that ssh
// reaches; inside a job of one process per node. One call per process, in its main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::launcher {

// How nodes find each other on each of which the command is called.
struct MeetingOptions {
  std::string address{};  // of node 0
  int port = 0;           // of node 0's launcher; 0: not said
  std::filesystem::path secret_file{};
  std::int64_t timeout = 300;  // s
};

struct SshOptions {
  std::string hosts{}, hostfile{};  // both empty: not by ssh
  int ranks = 0, port = 0;          // 0: not said
};

struct MpirunOptions {
  std::string words{};  // the user's own
  std::string ports{};  // "60000-60015"; empty: any
  bool tag_output = false;
};

struct LaunchOptions {
  int nodes = 0;                     // 0: not said, which is 1 or, inside another job, that job's processes
  int node = -1;                     // -1: not said
  std::string ranks_per_node = "1";  // or auto: the node's cores; empty: not said
  MeetingOptions meeting{};
  SshOptions ssh{};
  MpirunOptions mpirun{};
  std::int64_t stop_timeout = 30;  // s
  bool allow_differences = false;
  std::string wrapper{};             // a program of this node that becomes each rank's program, given its words
  std::string version{};             // of Lockstep
  std::vector<std::string> words{};  // the program
};

// Fills in from the environment what is not said. Returns the job's exit code. Throws Error for options that do not
// fit.
int launch(const LaunchOptions& options);

}  // namespace lockstep::launcher
