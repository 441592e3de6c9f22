// Watches that all ranks move: the ranks of a node by a table of heartbeats in shared memory, the nodes by small
// messages between their first ranks on a separate communicator. A program that returns on one rank while other ranks
// go on ends the job within seconds, with status 1. Each rank has a watchdog thread that wakes about once
// a second; on each node, the first watchdog that is awake reports. The log names a rank that stands still, with host,
// step, process state and, if it answers, its stack; it does not name the ranks that wait for it. Watching other nodes
// needs MPI_THREAD_MULTIPLE; without, each node watches its own ranks. Constructor and destructor are collective.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/monitor/heartbeat_table.h"
#include "lockstep/train/monitor/node_watch.h"
#include "lockstep/train/monitor/watch_verdict.h"

namespace lockstep::train {

struct WatchdogOptions {
  double stall = 60;                   // seconds without a beat until the rank is reported
  double abort = 300;                  // seconds without a beat until the job is ended; 0: never
  int stack_signal = 0;                // the signal that makes this process write its stack; 0: none
  std::filesystem::path stacks = {};   // the file of the stack, for the message
  std::function<void()> give_up = {};  // ends the job; empty: ends the process with kExitStalled
};

class Watchdog {
 public:
  // `heartbeat` is this rank's, and must outlive this object.
  Watchdog(const comm::Communicator& comm, Heartbeat& heartbeat, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void look(Clock::time_point now);
  void judge_node(Clock::time_point now);
  void report(const Verdict& verdict, std::span<const host::ProcessState> processes);
  void judge_all_wait(bool node_waits);
  void tell_who_goes_on(Clock::time_point now);
  void judge_returned();
  void give_up(const std::string& why, int status = kExitStalled);
  std::string name_of(int rank) const;

  comm::Communicator comm_;
  WatchdogOptions options_;
  HeartbeatTable table_;
  std::unique_ptr<NodeWatch> nodes_;  // on the first rank of each node; null if nodes exchange no heartbeats
  Clock::duration interval_;
  Clock::time_point last_look_;
  bool told_all_wait_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace lockstep::train
