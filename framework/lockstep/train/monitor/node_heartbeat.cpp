#include "lockstep/train/monitor/node_heartbeat.h"

#include <algorithm>
#include <limits>
#include <thread>

namespace lockstep::train {
namespace {

constexpr int kTag = 0;

}  // namespace

NodeHeartbeat::NodeHeartbeat(comm::Communicator leaders) : leaders_(std::move(leaders)) {
  const auto now = Clock::now();
  for (int node = 0; node < leaders_.size(); ++node) {
    const bool talks = leaders_.is_root() ? node > 0 : node == 0;
    if (talks) peers_.push_back({.node = node, .state = {}, .sending = {}, .receiving = {}, .heard = now});
  }
  for (Peer& peer : peers_) receive(peer);  // peers_ does not change from here on: requests refer to its elements
}

void NodeHeartbeat::receive(Peer& peer) {
  peer.receiving = leaders_.irecv(comm::Buffer(std::span(peer.mail->in)), peer.node, kTag, peer.mail);
}

void NodeHeartbeat::send(Peer& peer, const Words& words) {
  peer.mail->out = words;
  peer.sending =
      leaders_.isend(comm::ConstBuffer(std::span<const std::uint64_t>(peer.mail->out)), peer.node, kTag, peer.mail);
}

// Returns whether a message has arrived.
bool NodeHeartbeat::listen(Peer& peer, Clock::time_point now) {
  if (peer.left || !peer.receiving.test()) return false;
  peer.heard = now;
  const Words& words = peer.mail->in;
  peer.state = {.least = words[0], .all_wait = words[1] != 0, .furthest = words[3]};
  peer.left = words[2] != 0;
  if (!peer.left) receive(peer);
  return true;
}

void NodeHeartbeat::combine() {
  others_ = {.least = std::numeric_limits<std::uint64_t>::max(), .all_wait = true};
  for (const Peer& peer : peers_) {
    if (peer.left) continue;
    others_.least = std::min(others_.least, peer.state.least);
    others_.all_wait = others_.all_wait && peer.state.all_wait;
    others_.furthest = std::max(others_.furthest, peer.state.furthest);
  }
}

void NodeHeartbeat::exchange(const State& mine, Clock::time_point now) {
  for (Peer& peer : peers_) {
    while (listen(peer, now)) {
    }
  }
  combine();
  // The first node answers with the combined state of all nodes, its own included.
  const bool hub = leaders_.is_root();
  const State said{.least = hub ? std::min(mine.least, others_.least) : mine.least,
                   .all_wait = hub ? mine.all_wait && others_.all_wait : mine.all_wait,
                   .furthest = hub ? std::max(mine.furthest, others_.furthest) : mine.furthest};
  for (Peer& peer : peers_) {
    if (peer.sending.active() && !peer.sending.test()) continue;
    send(peer, {said.least, said.all_wait ? 1U : 0U, 0, said.furthest});
  }
}

std::vector<int> NodeHeartbeat::heard() const {
  std::vector<int> nodes;
  for (const Peer& peer : peers_) {
    if (!peer.left) nodes.push_back(peer.node);
  }
  return nodes;
}

double NodeHeartbeat::silent(int node, Clock::time_point now) const {
  const auto peer = std::ranges::find(peers_, node, &Peer::node);
  return std::chrono::duration<double>(now - peer->heard).count();
}

void NodeHeartbeat::forgive(Clock::time_point now) {
  for (Peer& peer : peers_) peer.heard = now;
}

void NodeHeartbeat::leave(std::chrono::seconds limit) {
  const auto until = Clock::now() + limit;
  std::vector<bool> said(peers_.size(), false);
  for (bool done = false; !done && Clock::now() < until;) {
    done = true;
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      Peer& peer = peers_[p];
      while (listen(peer, Clock::now())) {
      }
      const bool sent = !peer.sending.active() || peer.sending.test();
      if (sent && !said[p]) {
        send(peer, {0, 0, 1, 0});
        said[p] = true;
        done = false;
      }
      done = done && sent && peer.left;
    }
    if (!done) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace lockstep::train
