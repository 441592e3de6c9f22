// A connection between two launchers, or between an agent and a launcher: a non-blocking socket, the handshake, and
// sealed messages once both sides have proven that they know the secret. It is driven by pump(), which never waits and
// never throws: whatever goes wrong closes the connection and is problem(). One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "tools/launcher/handshake.h"
#include "tools/launcher/sealed_channel.h"

namespace lockstep::launcher {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // `peer` names the other side in messages.
  Connection(io::FileDescriptor socket, std::string peer, Handshake::Side side, const Secret& secret);

  pollfd wanted() const;  // to be polled
  // Sends and receives what can be now, and reads the messages that are whole.
  void pump();

  // Both sides have proven that they know the secret.
  bool ready() const { return channel_.has_value(); }
  bool closed() const { return !socket_.open(); }
  // Why it was closed; empty: the peer closed it.
  const std::string& problem() const { return problem_; }

  // Nothing is sent on a connection that is closed.
  void send(const Message& message);
  bool all_sent() const { return closed() || to_send_.empty(); }
  std::optional<Message> next();
  // Closes it, with what the peer did wrong.
  void close(std::string problem);

  const std::string& peer() const { return peer_; }
  const io::FileDescriptor& socket() const { return socket_; }
  Clock::time_point began() const { return began_; }

 private:
  void send_bytes();
  void receive_bytes();
  void shake_hands();
  void read_messages();

  io::FileDescriptor socket_;
  std::string peer_;
  Handshake handshake_;
  std::optional<SealedChannel> channel_;
  std::string received_, to_send_, problem_;
  std::deque<Message> messages_;
  Clock::time_point began_ = Clock::now();
};

// Waits until one of the files is ready, `limit` has passed, or a signal has come.
void wait_for(std::vector<pollfd>& files, std::chrono::milliseconds limit);

}  // namespace lockstep::launcher
