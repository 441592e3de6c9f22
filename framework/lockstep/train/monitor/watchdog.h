// Watches that all ranks move: the ranks of a node through a table of heartbeats in their shared memory, the nodes
// through small messages that their first ranks exchange on a communicator of their own. Each rank has a thread for it
// that wakes about once a second; of a node, the first that is awake speaks. A rank that stands still is named in the
// log, with host, step, process state and, if it answers, its stack; who waits for it is not. Between nodes it needs
// MPI_THREAD_MULTIPLE; without, each node watches its own ranks. Made and ended by all ranks together.
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
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/monitor/heartbeat_table.h"
#include "lockstep/train/monitor/node_watch.h"
#include "lockstep/train/monitor/watch_verdict.h"

namespace lockstep::train {

struct WatchdogOptions {
  double stall = 60;                   // seconds without a beat until it is said
  double abort = 300;                  // and until the job is ended; 0: never
  int stack_signal = 0;                // that makes this process write its stack; 0: it does not
  std::filesystem::path stacks = {};   // where it writes it, for the message
  std::function<void()> give_up = {};  // ends the job; empty: with kExitStalled
};

class Watchdog {
 public:
  // `heartbeat` is this rank's, and outlives this.
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
  void give_up(const std::string& why);
  std::string name_of(int rank) const;

  comm::Communicator comm_;
  WatchdogOptions options_;
  HeartbeatTable table_;
  std::unique_ptr<NodeWatch> nodes_;  // of the first rank of each node; null where nodes do not talk
  Clock::duration interval_;
  Clock::time_point last_look_;
  bool told_all_wait_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace lockstep::train
