#include "tools/launcher/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/host/network.h"

namespace lockstep::launcher {
namespace {

using io::FileDescriptor;

constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;

const sockaddr* generic(const void* address) { return static_cast<const sockaddr*>(address); }

void set_option(const FileDescriptor& socket, int level, int name, int value) {
  check_call(setsockopt(socket.get(), level, name, &value, sizeof value) == 0, "launch", "option {} of a socket", name);
}

FileDescriptor listener_of_family(int family, int port, int& reason) {
  FileDescriptor socket(::socket(family, kType, 0));
  reason = errno;
  if (!socket.open()) return socket;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  const int bound = family == AF_INET6 ? ::bind(socket.get(), generic(&six), sizeof six)
                                       : ::bind(socket.get(), generic(&four), sizeof four);
  if (bound == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  reason = errno;
  return FileDescriptor();
}

// An IPv4 address of this end or the other, also where IPv6 carries it.
std::optional<in_addr> ipv4_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family != AF_INET6) return std::nullopt;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&six)) return std::nullopt;
  in_addr four{};
  std::memcpy(&four, six.s6_addr + 12, sizeof four);
  return four;
}

// fe80::/10: the same network on every link.
bool is_link_local(const host::Address& address) {
  static const host::Network link = host::network_of(*host::parse_address("fe80::"), 10);
  return link.holds(address);
}

sockaddr_un local_address(const std::string& name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  check(name.size() + 1 < sizeof address.sun_path, "launch", "a local socket's name of {} bytes", name.size());
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the zero before it: no file
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string connect_to(const addrinfo& address, int limit_ms, FileDescriptor& socket) {
  socket = FileDescriptor(::socket(address.ai_family, kType, 0));
  if (!socket.open()) return std::strerror(errno);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd file{socket.get(), POLLOUT, 0};
  if (::poll(&file, 1, limit_ms) <= 0) return "no answer";
  int code = 0;
  socklen_t size = sizeof code;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
  return code == 0 ? "" : std::strerror(code);
}

}  // namespace

FileDescriptor listen_tcp(int port) {
  int reason = 0;
  FileDescriptor listener = listener_of_family(AF_INET6, port, reason);
  if (!listener.open() && reason != EADDRINUSE) listener = listener_of_family(AF_INET, port, reason);
  check(listener.open(), "launch", "port {} cannot be listened at: {}; --master-port or --ports names another", port,
        std::strerror(reason));
  return listener;
}

int port_of(const FileDescriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check_call(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "launch",
             "the port of a socket");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int free_port() { return port_of(listen_tcp(0)); }

std::optional<FileDescriptor> connect_tcp(const std::string& host, int port, int limit_ms, std::string& reason) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (code != 0) {
    reason = fmt::format("the name {} is unknown ({})", host, ::gai_strerror(code));
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    FileDescriptor socket;
    reason = connect_to(*at, limit_ms, socket);
    if (!reason.empty()) continue;
    notice_silence(socket);
    return socket;
  }
  return std::nullopt;
}

std::vector<std::string> own_addresses() {
  std::vector<host::Interface> there = host::interfaces();
  std::erase_if(there, [](const host::Interface& each) { return each.loopback || is_link_local(each.address); });
  std::ranges::stable_sort(there, {}, [](const host::Interface& each) { return each.address.bits; });
  std::vector<std::string> texts;
  for (const host::Interface& each : there) texts.push_back(each.address.str());
  return texts;
}

FileDescriptor listen_local(const std::string& name) {
  socklen_t length = 0;
  const sockaddr_un address = local_address(name, length);
  FileDescriptor socket(::socket(AF_UNIX, kType, 0));
  const bool listens =
      socket.open() && ::bind(socket.get(), generic(&address), length) == 0 && ::listen(socket.get(), kBacklog) == 0;
  check_call(listens, "launch", "no local socket for launch agents");
  return socket;
}

FileDescriptor connect_local(const std::string& name) {
  socklen_t length = 0;
  const sockaddr_un address = local_address(name, length);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check_call(socket.open() && ::connect(socket.get(), generic(&address), length) == 0, "launch",
             "the launcher of this job does not answer");
  return socket;
}

bool is_own_user(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

std::string peer_of(const FileDescriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "a peer that has gone";
  char text[INET6_ADDRSTRLEN] = {};
  if (const auto four = ipv4_of(address)) {
    ::inet_ntop(AF_INET, &*four, text, sizeof text);
    const auto port = address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                   : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
    return fmt::format("{}:{}", text, ntohs(port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  return fmt::format("[{}]:{}", text, ntohs(six.sin6_port));
}

std::string without_port(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

std::string network_of(const FileDescriptor& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return "";
  const auto four = ipv4_of(own);
  if (!four) return "";
  host::Address address;
  std::memcpy(address.bytes.data(), &*four, sizeof *four);
  const std::vector<host::Interface> there = host::interfaces();
  const auto found = std::ranges::find(there, address, &host::Interface::address);
  return found == there.end() || found->loopback ? "" : found->network().str();
}

void notice_silence(const FileDescriptor& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 11'000);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace lockstep::launcher
