// TCP connections between hosts with limits of time, for the checks of ports and links. A socket belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::preflight {

struct Target {
  std::string address;
  int port = 0;
};

// A listening socket on all addresses of this host; port 0: the kernel chooses. errno says why there is none.
std::optional<io::FileDescriptor> listen_at(int port);
int port_of(const io::FileDescriptor& socket);

// Connects to all targets, up to 256 of them at once, which have `limit` together. By target: "" (connected), or what
// came instead: "no answer within 2 s", "Connection refused", "No route to host".
std::vector<std::string> try_to_connect(const std::vector<Target>& targets, std::chrono::milliseconds limit);

// A connection whose calls give up after `limit`. Closed, if it cannot be made.
io::FileDescriptor connect_to(const Target& target, std::chrono::milliseconds limit);
void limit_time(const io::FileDescriptor& socket, std::chrono::milliseconds limit);

// Segments that the kernel had to send again on this connection.
std::int64_t retransmissions(const io::FileDescriptor& socket);

// The process that listens at a port of this host: "nginx (process 812)"; "" if it cannot be seen.
std::string listener_of(int port);

}  // namespace lockstep::preflight
