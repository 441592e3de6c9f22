// Watches the other nodes of a job and reports a node that sends no heartbeats. On the first rank of each node; one
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/monitor/node_heartbeat.h"

namespace lockstep::train {

class NodeWatch {
 public:
  using Clock = NodeHeartbeat::Clock;

  // Makes the watch; returns null on other ranks, in a job of one node, and without MPI_THREAD_MULTIPLE. Collective.
  static std::unique_ptr<NodeWatch> make(const comm::Communicator& comm, const comm::Communicator& node);
  NodeWatch(const comm::Communicator& comm, comm::Communicator leaders);

  NodeHeartbeat& heartbeat() { return heartbeat_; }
  // Logs nodes that have been silent for `stall` seconds, and nodes that are heard again. Returns the message for the
  // first node that has been silent for `abort` seconds (0: never); empty: none.
  std::string judge(Clock::time_point now, double stall, double abort);

 private:
  std::string names_of(int node) const;

  const comm::Communicator& comm_;
  NodeHeartbeat heartbeat_;
  std::vector<bool> silence_told_;  // by node
};

}  // namespace lockstep::train
