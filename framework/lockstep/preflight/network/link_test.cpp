#include "lockstep/preflight/network/link_test.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <vector>

namespace lockstep::preflight {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAnswerLimit{5000};  // for one answer
constexpr std::chrono::milliseconds kSending{200};       // of bulk data
constexpr std::chrono::milliseconds kPinging{4000};      // at most, where answers are lost
constexpr int kPings = 200;
constexpr char kPing = 'p', kBulk = 'b';

bool send_all(const io::FileDescriptor& socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket.get(), at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(const io::FileDescriptor& socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket.get(), at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

// Reads what comes until the client has said its end, and answers with the number of bytes.
void take_bulk(const io::FileDescriptor& client) {
  std::vector<char> block(1 << 18);
  std::uint64_t bytes = 0;
  for (ssize_t got = 1; got > 0;) {
    got = recv(client.get(), block.data(), block.size(), 0);
    if (got > 0) bytes += static_cast<std::uint64_t>(got);
    if (got < 0 && errno == EINTR) got = 1;
  }
  send_all(client, &bytes, sizeof(bytes));
}

void answer(const io::FileDescriptor& client) {
  char word = 0;
  while (receive_all(client, &word, 1)) {
    if (word == kBulk) return take_bulk(client);
    if (!send_all(client, &word, 1)) return;
  }
}

bool measure_pings(const Target& target, LinkFigures& figures) {
  const io::FileDescriptor socket = connect_to(target, kAnswerLimit);
  if (!socket.open()) return false;
  const auto begin = steady_clock::now();
  double least = 1e9;
  for (; figures.pings < kPings && steady_clock::now() - begin < kPinging; ++figures.pings) {
    const auto sent = steady_clock::now();
    char word = kPing;
    if (!send_all(socket, &word, 1) || !receive_all(socket, &word, 1)) return false;
    least = std::min(least, seconds_since(sent));
  }
  figures.microseconds = 1e6 * least;
  figures.lost = retransmissions(socket);
  return true;
}

bool measure_bulk(const Target& target, LinkFigures& figures) {
  const io::FileDescriptor socket = connect_to(target, kAnswerLimit);
  if (!socket.open() || !send_all(socket, &kBulk, 1)) return false;
  const std::vector<char> block(1 << 16);
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < kSending) {
    if (!send_all(socket, block.data(), block.size())) return false;
  }
  std::uint64_t bytes = 0;
  if (shutdown(socket.get(), SHUT_WR) != 0 || !receive_all(socket, &bytes, sizeof(bytes))) return false;
  figures.megabytes_per_second = 1e-6 * static_cast<double>(bytes) / seconds_since(begin);
  return true;
}

}  // namespace

LinkServer::LinkServer(int first, int last) {
  for (int port = first; port <= last && port_ == 0; ++port) {
    if (auto socket = listen_at(port)) {
      socket_ = *std::move(socket);
      port_ = port_of(socket_);
    }
  }
  if (port_ != 0) thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

void LinkServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    constexpr int kLook = 20;  // milliseconds until it looks for its end
    if (poll(&waiting, 1, kLook) != 1) continue;
    const io::FileDescriptor client(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.open()) continue;
    try {
      limit_time(client, kAnswerLimit);
      answer(client);
    } catch (const std::exception&) {  // of this client; it is measured as one that gets no answer
    }
  }
}

std::optional<LinkFigures> measure_link(const Target& target) {
  LinkFigures figures;
  if (!measure_pings(target, figures) || !measure_bulk(target, figures)) return std::nullopt;
  return figures;
}

}  // namespace lockstep::preflight
