// The heartbeat of a node, which the watchdogs of different nodes exchange: each node's first rank sends a few numbers
// to the first node's first rank, which answers with the combined numbers of all nodes. There is one outstanding
// message each way; a silent node is detected by the time since its last message. One thread at a time; the
// communicator has no other use.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

class NodeHeartbeat {
 public:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::uint64_t least = 0;     // smallest number of phases that a rank of the node has entered
    bool all_wait = false;       // true: all ranks of the node stand still and wait
    std::uint64_t furthest = 0;  // watch_verdict.h
  };

  // `leaders`: a communicator of one rank per node, in the order of nodes.
  explicit NodeHeartbeat(comm::Communicator leaders);

  // Sends this node's state and receives the messages that have arrived; does not wait.
  void exchange(const State& mine, Clock::time_point now);
  // Returns the combined state of the other nodes: the smallest `least`, whether all wait, and the
  // largest `furthest`.
  const State& others() const { return others_; }
  // Returns the nodes that send messages to this one (to the first node all others, to others the first) and have not
  // left.
  std::vector<int> heard() const;
  double silent(int node, Clock::time_point now) const;  // seconds since the last message of `node`
  // After this process was suspended: counts all nodes as heard now.
  void forgive(Clock::time_point now);
  // Ends the exchange: waits until every message has arrived, or `limit` is over. Collective.
  void leave(std::chrono::seconds limit);

 private:
  using Words = std::array<std::uint64_t, 4>;  // least, all_wait, goodbye, furthest
  struct Mail {                                // the memory of messages
    Words out{}, in{};
  };
  struct Peer {
    int node = 0;
    std::shared_ptr<Mail> mail = std::make_shared<Mail>();
    State state;
    comm::Request sending, receiving;
    Clock::time_point heard;
    bool left = false;  // true: it sends no more messages
  };
  void receive(Peer& peer);
  void send(Peer& peer, const Words& words);
  bool listen(Peer& peer, Clock::time_point now);
  void combine();

  comm::Communicator leaders_;
  std::vector<Peer> peers_;
  State others_;
};

}  // namespace lockstep::train
