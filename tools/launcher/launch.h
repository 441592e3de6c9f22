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

struct LaunchOptions {
  int nodes = 0;                     // 0: not said, which is 1 or, inside another job, that job's processes
  int node = -1;                     // -1: not said
  std::string ranks_per_node = "1";  // or auto: the node's cores
  std::string master_address{};
  int master_port = 29500;
  std::filesystem::path secret_file{};
  std::int64_t timeout = 300, stop_timeout = 30;  // s

  std::string hosts{}, hostfile{};  // by ssh
  int ranks = 0, ssh_port = 0;

  std::string mpi_args{};
  bool tag_output = false, allow_differences = false;
  std::string wrapper{};             // a program of this node that becomes each rank's program, given its words
  std::string version{};             // of Lockstep
  std::vector<std::string> words{};  // the program
};

// Returns the job's exit code. Throws Error for options that do not fit.
int launch(const LaunchOptions& options);

}  // namespace lockstep::launcher
