// The measurement of a link between two hosts by TCP: a server thread on each host, and a client that measures towards
// one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "lockstep/preflight/network/sockets.h"

namespace lockstep::preflight {

// Answers clients one after the other until its end, at a port of `first` to `last`, or any.
class LinkServer {
 public:
  LinkServer(int first, int last);
  int port() const { return port_; }  // 0: no port was free

 private:
  void serve(const std::stop_token& stop);

  io::FileDescriptor socket_{};
  int port_ = 0;
  std::jthread thread_{};
};

struct LinkFigures {
  double microseconds = 0;           // there and back, one byte: the least of many
  double megabytes_per_second = 0;   // from here to there
  std::int64_t pings = 0, lost = 0;  // one-byte messages, and those that the kernel had to send again
};
// std::nullopt where there is no connection or it does not answer.
std::optional<LinkFigures> measure_link(const Target& target);

}  // namespace lockstep::preflight
