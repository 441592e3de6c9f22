// A listening socket and its connections that have not proven yet that they know the secret. A connection has ten
// seconds for that, and there is room for 64; a connection that does something else (a port scan, noise, silence) is
// closed and logged once per address. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "tools/launcher/connection.h"
#include "tools/launcher/say.h"

namespace lockstep::launcher {

class Reception {
 public:
  Reception(io::FileDescriptor listener, const Secret& secret, Say say);

  void add_files(std::vector<pollfd>& files) const;  // to be polled
  // Accepts new connections and reads messages. Returns the connections that have proven since that they know the
  // secret.
  std::vector<std::unique_ptr<Connection>> look();
  // In which a new connection has to prove that it knows the secret.
  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }

 private:
  void accept_all();
  void turn_away(const Connection& connection, const std::string& reason);

  io::FileDescriptor listener_;
  Secret secret_;
  Say say_;
  std::chrono::milliseconds limit_{10'000};
  std::vector<std::unique_ptr<Connection>> waiting_;
  std::set<std::string> said_;  // addresses
};

}  // namespace lockstep::launcher
