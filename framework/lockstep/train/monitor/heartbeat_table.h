// The heartbeats of the ranks of a node, in their shared memory, as this rank's watchdog sees them: when each rank
// moved last, which ranks were reported, and which watchdog speaks for the node. Made by all ranks together; then of
// one thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/shared_window.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/train/monitor/watch_verdict.h"

namespace lockstep::train {

class HeartbeatTable {
 public:
  using Clock = std::chrono::steady_clock;
  // How a process is asked for its stack: the signal (0: it is not), and where it writes it, for the message.
  struct Stacks {
    int signal = 0;
    std::filesystem::path file = {};
  };

  // Moves `heartbeat`, which is this rank's and outlives this, into the table, until leave().
  HeartbeatTable(const comm::Communicator& comm, Heartbeat& heartbeat, const Stacks& stacks);
  void leave() { heartbeat_.detach(); }
  const comm::Communicator& node() const { return node_; }

  void read(Clock::time_point now);
  void show_awake();                    // to the other watchdogs of the node
  void forgive(Clock::time_point now);  // this process was stopped and saw nothing: no rank has stood still
  // Of the ranks as they were read last, by local rank.
  const std::vector<RankView>& views() const { return views_; }
  bool speaks(Clock::time_point now) const;  // of the ranks whose watchdogs are awake, this is the first

  // Whether the rank is to be reported: once for each time that it stands still.
  bool report(std::size_t local);
  // What its process does and how it goes on, for the report. Asks the process for its stack.
  std::string describe(std::size_t local, const host::ProcessState& process);
  // Ranks that were reported and have moved since: the rank, and the seconds that it stood still.
  struct GoesOn {
    int rank;
    double seconds;
  };
  std::vector<GoesOn> going_on(Clock::time_point now);

 private:
  struct Seen {  // of a local rank
    std::uint64_t beats = 0, watches = 0;
    Clock::time_point beat_at, watch_at;
    std::uint64_t told_beats = 0;  // what it had when it was reported; 0: it was not
    Clock::time_point told_since;
  };

  comm::Communicator node_;
  Heartbeat& heartbeat_;
  comm::SharedWindow table_;
  std::vector<Heartbeat::Row*> rows_;  // these by local rank
  std::vector<int> ranks_;
  std::vector<std::string> stack_files_;
  std::vector<Seen> seen_;
  std::vector<RankView> views_;
};

}  // namespace lockstep::train
