#include "tools/launcher/reception.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

constexpr std::size_t kPlaces = 64;
constexpr std::size_t kMostAtOnce = kPlaces / 2;  // new connections are heard before the next ones need room
constexpr std::size_t kMostSaid = 100;            // addresses; more are turned away in silence

}  // namespace

Reception::Reception(io::FileDescriptor listener, const Secret& secret, Say say)
    : listener_(std::move(listener)), secret_(secret), say_(std::move(say)) {}

void Reception::add_files(std::vector<pollfd>& files) const {
  files.push_back({listener_.get(), POLLIN, 0});
  for (const auto& connection : waiting_) files.push_back(connection->wanted());
}

void Reception::turn_away(const Connection& connection, const std::string& reason) {
  if (said_.size() >= kMostSaid || !said_.insert(without_port(connection.peer())).second) return;
  say_(fmt::format("a connection from {} is refused: {}", connection.peer(), reason));
}

void Reception::accept_all() {
  for (std::size_t i = 0; i < kMostAtOnce; ++i) {
    io::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) return;  // nobody, somebody who has gone already, or no descriptor left now
    const std::string peer = peer_of(socket);
    if (peer.empty() && !is_own_user(socket)) continue;
    try {
      if (!peer.empty()) notice_silence(socket);
    } catch (const Error&) {
      continue;  // it has gone already
    }
    if (waiting_.size() >= kPlaces) {  // the oldest goes: an honest node needs moments
      turn_away(*waiting_.front(), "too many others wait, and it has not proven in time that it knows the secret");
      waiting_.erase(waiting_.begin());
    }
    waiting_.push_back(std::make_unique<Connection>(std::move(socket), peer, Handshake::Side::Server, secret_));
  }
}

std::vector<std::unique_ptr<Connection>> Reception::look() {
  accept_all();
  std::vector<std::unique_ptr<Connection>> ready, still;
  for (auto& connection : waiting_) {
    connection->pump();
    const bool late = Connection::Clock::now() > connection->began() + limit_;
    if (connection->ready()) {
      ready.push_back(std::move(connection));
    } else if (connection->closed()) {
      const std::string& problem = connection->problem();
      turn_away(*connection, problem.empty() ? "it was closed before it had proven that it knows the secret" : problem);
    } else if (late) {
      turn_away(*connection, fmt::format("it has not proven within {} s that it knows the secret",
                                         std::chrono::duration<double>(limit_).count()));
    } else {
      still.push_back(std::move(connection));
    }
  }
  waiting_ = std::move(still);
  return ready;
}

}  // namespace lockstep::launcher
