// The heartbeats of a node's ranks in shared memory, as this rank's watchdog reads them: the time of each rank's last
// beat, the ranks that were reported, and the watchdog that reports for the node. The constructor is collective; after
// that, one thread.
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
  // The signal that makes a process write its stack (0: none), and the file that it writes to, for the message.
  struct Stacks {
    int signal = 0;
    std::filesystem::path file = {};
  };

  // Moves this rank's `heartbeat` into the table, until leave(); it must outlive this object.
  HeartbeatTable(const comm::Communicator& comm, Heartbeat& heartbeat, const Stacks& stacks);
  void leave() { heartbeat_.detach(); }
  const comm::Communicator& node() const { return node_; }

  void read(Clock::time_point now);
  void show_awake();                    // tells the node's other watchdogs that this one runs
  void forgive(Clock::time_point now);  // after this process was stopped: counts all ranks as moving until now
  // Returns the result of the last read(), by local rank.
  const std::vector<RankView>& views() const { return views_; }
  bool speaks(Clock::time_point now) const;  // this rank is the first one whose watchdog is awake, and reports

  // Returns whether to report the rank now: once per standstill.
  bool report(std::size_t local);
  // Describes the state of the rank's process and how it can continue, for the report; asks the process for its stack.
  std::string describe(std::size_t local, const host::ProcessState& process);
  // Returns the reported ranks that move again, each with the seconds of its standstill.
  struct GoesOn {
    int rank;
    double seconds;
  };
  std::vector<GoesOn> going_on(Clock::time_point now);

 private:
  struct Seen {  // the last values of one local rank
    std::uint64_t beats = 0, watches = 0;
    Clock::time_point beat_at, watch_at;
    std::uint64_t told_beats = 0;  // its beats when it was reported; 0: it was not reported
    Clock::time_point told_since;
  };

  comm::Communicator node_;
  Heartbeat& heartbeat_;
  comm::SharedWindow table_;
  std::vector<Heartbeat::Row*> rows_;  // this and the vectors below: by local rank
  std::vector<int> ranks_;
  std::vector<std::string> stack_files_;
  std::vector<Seen> seen_;
  std::vector<RankView> views_;
};

}  // namespace lockstep::train
