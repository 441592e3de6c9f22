// Sockets of the launcher: TCP between nodes, and a local one by which mpirun's launch agents reach the launcher of
// node 0. All are non-blocking and closed on exec. Throws Error with the address and the system's reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::launcher {

// Listens at `port` on all addresses, of IPv6 too where there is IPv6. 0: a free port.
io::FileDescriptor listen_tcp(int port);
int port_of(const io::FileDescriptor& listener);
// A port without a listener.
int free_port();

// Begins to connect to `host`; each address that the name has is tried in turn. `limit_ms` is for one address. Empty:
// no listener there now, and `reason` says why. A name that does not exist is such a reason too, as it may exist later.
std::optional<io::FileDescriptor> connect_tcp(const std::string& host, int port, int limit_ms, std::string& reason);

// This machine's IPv4 addresses, loopback apart; then its IPv6 addresses that reach beyond a link.
std::vector<std::string> own_addresses();

// A name in Linux's abstract namespace: it leaves no file behind. Reachable for processes of this user alone
// (is_own_user()).
io::FileDescriptor listen_local(const std::string& name);
io::FileDescriptor connect_local(const std::string& name);
bool is_own_user(const io::FileDescriptor& socket);

// "10.1.0.7:51234"; "" for a local socket.
std::string peer_of(const io::FileDescriptor& socket);
std::string without_port(const std::string& peer);
// The network of the interface that the connection uses here, "10.1.0.0/16"; "" for IPv6 and loopback.
std::string network_of(const io::FileDescriptor& socket);

// A connection whose other side vanishes without a word fails after some 11 s.
void notice_silence(const io::FileDescriptor& socket);

}  // namespace lockstep::launcher
