#include "lockstep/preflight/network/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostConnections = 256;  // at a time: a usual limit is 1024 open files

sockaddr_in socket_address_of(const Target& target) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(target.port));
  check(inet_pton(AF_INET, target.address.c_str(), &to.sin_addr) == 1, "network", "'{}' is no address of IPv4",
        target.address);
  return to;
}

// Connecting, connected, or errno.
std::pair<io::FileDescriptor, int> begin_connecting(const Target& target) {
  io::FileDescriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file.open()) return {std::move(file), errno};
  const sockaddr_in to = socket_address_of(target);
  const int error = connect(file.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 ? 0 : errno;
  return {std::move(file), error == EINPROGRESS ? 0 : error};
}

int error_of(int socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

std::vector<std::string> connect_at_once(std::span<const Target> targets, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::vector<std::string> results(targets.size());
  std::vector<io::FileDescriptor> sockets(targets.size());
  std::vector<pollfd> waiting;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    auto [socket, error] = begin_connecting(targets[i]);
    if (error != 0) {
      results[i] = std::strerror(error);
      continue;
    }
    sockets[i] = std::move(socket);
    waiting.push_back({.fd = sockets[i].get(), .events = POLLOUT, .revents = 0});
    of.push_back(i);
  }
  while (!waiting.empty()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    for (std::size_t k = waiting.size(); k-- > 0;) {
      if (waiting[k].revents == 0) continue;
      if (const int error = error_of(waiting[k].fd); error != 0) results[of[k]] = std::strerror(error);
      sockets[of[k]] = io::FileDescriptor();  // else a server of one client at a time would wait for it
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(k));
      of.erase(of.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (const std::size_t i : of)
    results[i] = formatted("no answer within {:.1f} s", std::chrono::duration<double>(limit).count());
  return results;
}

// The number of the listening socket in the kernel's table; "" without one.
std::string listening_inode(int port) {
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retries, user, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >> inode;
      constexpr const char* kListens = "0A";
      if (state == kListens && local.ends_with(formatted(":{:04X}", port))) return inode;
    }
  }
  return "";
}

bool holds(const fs::path& process, const std::string& link) {
  std::error_code hidden, ended;  // a process may end while it is looked at
  for (fs::directory_iterator file(process / "fd", ended); !ended && file != fs::end(file); file.increment(ended)) {
    if (fs::read_symlink(file->path(), hidden) == link) return true;
  }
  return false;
}

}  // namespace

std::optional<io::FileDescriptor> listen_at(int port) {
  io::FileDescriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file.open()) return std::nullopt;
  const int yes = 1;  // connections of a job that has just ended are no hindrance
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(file.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 || listen(file.get(), 128) != 0)
    return std::nullopt;
  return file;
}

int port_of(const io::FileDescriptor& socket) {
  sockaddr_in at{};
  socklen_t length = sizeof(at);
  check_call(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0, "network", "a socket's port");
  return ntohs(at.sin_port);
}

std::vector<std::string> try_to_connect(const std::vector<Target>& targets, std::chrono::milliseconds limit) {
  std::vector<std::string> results;
  for (std::size_t first = 0; first < targets.size(); first += kMostConnections) {
    const auto some = std::span(targets).subspan(first, std::min(kMostConnections, targets.size() - first));
    for (std::string& result : connect_at_once(some, limit)) results.push_back(std::move(result));
  }
  return results;
}

void limit_time(const io::FileDescriptor& socket, std::chrono::milliseconds limit) {
  const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  const int yes = 1;
  const int flags = fcntl(socket.get(), F_GETFL);
  check_call(flags >= 0 && fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) == 0 &&
                 setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0 &&
                 setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) == 0 &&
                 setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0,
             "network", "a socket's settings");
}

io::FileDescriptor connect_to(const Target& target, std::chrono::milliseconds limit) {
  auto [socket, error] = begin_connecting(target);
  if (error != 0) return io::FileDescriptor();
  pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (poll(&waiting, 1, static_cast<int>(limit.count())) != 1 || error_of(socket.get()) != 0)
    return io::FileDescriptor();
  limit_time(socket, limit);
  return std::move(socket);
}

std::int64_t retransmissions(const io::FileDescriptor& socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  return getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0 ? info.tcpi_total_retrans : 0;
}

std::string listener_of(int port) {
  const std::string inode = listening_inode(port);
  if (inode.empty()) return "";
  std::error_code hidden;
  for (fs::directory_iterator process("/proc", hidden); !hidden && process != fs::end(process);
       process.increment(hidden)) {
    const std::string id = process->path().filename();
    if (id.find_first_not_of("0123456789") != id.npos || !holds(process->path(), formatted("socket:[{}]", inode)))
      continue;
    std::string name;
    std::ifstream file(process->path() / "comm");
    std::getline(file, name);
    return formatted("{} (process {})", name, id);
  }
  return "";
}

}  // namespace lockstep::preflight
