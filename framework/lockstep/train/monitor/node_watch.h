// Watches the other nodes of a job: says which one is not heard. On the first rank of each node; one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/monitor/node_news.h"

namespace lockstep::train {

class NodeWatch {
 public:
  using Clock = NodeNews::Clock;

  // Collective; null where nodes do not talk: on other ranks, in a job of one node, and without MPI_THREAD_MULTIPLE.
  static std::unique_ptr<NodeWatch> make(const comm::Communicator& comm, const comm::Communicator& node);
  NodeWatch(const comm::Communicator& comm, comm::Communicator leaders);

  NodeNews& news() { return news_; }
  // Logs nodes that have been silent for `stall` seconds, and that are heard again. The text of the first one that has
  // been silent for `abort` seconds (0: never); empty: none.
  std::string judge(Clock::time_point now, double stall, double abort);

 private:
  std::string names_of(int node) const;

  const comm::Communicator& comm_;
  NodeNews news_;
  std::vector<bool> silence_told_;  // by node
};

}  // namespace lockstep::train
