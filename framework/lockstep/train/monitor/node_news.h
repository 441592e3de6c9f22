// What the watchdogs of different nodes tell each other: each node's first rank sends a few numbers to the first
// node's, which answers with those of all. One outstanding message each way; a node that does not answer is seen by how
// long ago it was heard. Calls come from one thread at a time, on a communicator that serves nothing else.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::train {

class NodeNews {
 public:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::uint64_t least = 0;  // phases that the last of its ranks has entered
    bool all_wait = false;    // all its ranks have stood still, waiting
  };

  // `leaders`: one rank of each node, in the order of nodes.
  explicit NodeNews(comm::Communicator leaders);

  // Tells the others about this node and hears what they have told; returns at once.
  void exchange(const State& mine, Clock::time_point now);
  // The others', taken together: the least of all, and whether all wait.
  const State& others() const { return others_; }
  // Nodes that this one hears from (all on the first, the first on others) and that have not left.
  std::vector<int> heard() const;
  double silent(int node, Clock::time_point now) const;  // seconds since the last word
  // It was suspended itself: nobody else was silent.
  void forgive(Clock::time_point now);
  // Collective, at the end: until every message has arrived, or `limit` is over.
  void leave(std::chrono::seconds limit);

 private:
  using Words = std::array<std::uint64_t, 3>;  // least, all_wait, goodbye
  struct Mail {                                // that messages lie in
    Words out{}, in{};
  };
  struct Peer {
    int node = 0;
    std::shared_ptr<Mail> mail = std::make_shared<Mail>();
    State state;
    comm::Request sending, receiving;
    Clock::time_point heard;
    bool left = false;  // it sends nothing any more
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
