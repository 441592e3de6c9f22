// Watches that all ranks move: the ranks of a node through a table of heartbeats in their shared memory, the nodes
// through small messages that their first ranks exchange on a communicator of their own. Each rank has a thread for it
// that wakes about once a second; of a node, the first that is awake speaks. A rank that stands still is named in the
// log, with host, step, process state and, if it answers, its stack; who waits for it is not. Between nodes it needs
// MPI_THREAD_MULTIPLE; without, each node watches its own ranks. Made and ended by all ranks together.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/shared_window.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/monitor/node_news.h"
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

  bool watches_nodes() const { return news_ != nullptr; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {  // of a local rank
    std::uint64_t beats = 0, watches = 0;
    Clock::time_point beat_at, watch_at;
    std::uint64_t told_beats = 0;  // what it had when it was reported; 0: it was not
    Clock::time_point told_since;
  };

  void run();
  void look(Clock::time_point now);
  void read_table(Clock::time_point now);
  bool speaks(Clock::time_point now) const;
  void judge_node(Clock::time_point now);
  void judge_nodes(Clock::time_point now);
  void tell(std::size_t local, const ProcessState& process);
  void tell_who_goes_on(Clock::time_point now);
  void give_up(const std::string& why);
  std::string name_of(int rank) const;
  std::string names_of_node(int node) const;

  comm::Communicator comm_, node_;
  Heartbeat& heartbeat_;
  WatchdogOptions options_;
  comm::SharedWindow table_;
  std::vector<Heartbeat::Row*> rows_;  // by local rank
  std::vector<int> ranks_;             // by local rank
  std::vector<std::string> stack_files_;
  Clock::duration interval_;
  std::unique_ptr<NodeNews> news_;  // of the first rank of each node; null where nodes do not talk
  std::vector<Seen> seen_;
  std::vector<RankView> views_;
  std::vector<bool> silence_told_;  // by node
  bool told_all_wait_ = false;
  Clock::time_point last_look_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace lockstep::train
