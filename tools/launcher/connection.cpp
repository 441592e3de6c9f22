#include "tools/launcher/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::launcher {

Connection::Connection(io::FileDescriptor socket, std::string peer, Handshake::Side side, const Secret& secret)
    : socket_(std::move(socket)), peer_(std::move(peer)), handshake_(side, secret), to_send_(handshake_.begin()) {}

pollfd Connection::wanted() const {
  const int events = to_send_.empty() ? POLLIN : POLLIN | POLLOUT;
  return {socket_.get(), static_cast<short>(events), 0};
}

void Connection::close(std::string problem) {
  if (closed()) return;
  problem_ = std::move(problem);
  socket_.close();
}

void Connection::send(const Message& message) {
  if (!ready() || closed()) return;
  to_send_ += channel_->seal(message);
  send_bytes();
}

std::optional<Message> Connection::next() {
  if (messages_.empty()) return std::nullopt;
  Message message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void Connection::pump() {
  if (!closed()) receive_bytes();
  if (!closed()) send_bytes();
  // A peer that did wrong is told so first, where the handshake has words for it.
  if (!closed() && !handshake_.problem().empty() && to_send_.empty()) close(handshake_.problem());
}

void Connection::send_bytes() {
  while (!to_send_.empty()) {
    const ssize_t bytes = ::send(socket_.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes > 0) {
      to_send_.erase(0, static_cast<std::size_t>(bytes));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      return close(std::strerror(errno));
    }
  }
}

void Connection::receive_bytes() {
  std::array<char, 16384> block{};
  while (handshake_.problem().empty()) {
    const ssize_t bytes = ::recv(socket_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (bytes == 0) return close("");
    if (bytes < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) close(std::strerror(errno));
      return;
    }
    const std::string_view text(block.data(), static_cast<std::size_t>(bytes));
    if (channel_) {
      channel_->receive(text);
    } else {
      received_ += text;
      shake_hands();
    }
    read_messages();
    if (closed()) return;
  }
}

void Connection::shake_hands() {
  to_send_ += handshake_.take(received_);
  if (!handshake_.done()) return;
  channel_.emplace(handshake_.keys());
  channel_->receive(std::exchange(received_, {}));
}

void Connection::read_messages() {
  try {
    while (channel_) {
      auto message = channel_->next();
      if (!message) return;
      messages_.push_back(*std::move(message));
    }
  } catch (const Error& error) {
    close(error.what());
  }
}

void wait_for(std::vector<pollfd>& files, std::chrono::milliseconds limit) {
  const int ready = ::poll(files.data(), files.size(), static_cast<int>(limit.count()));
  check_call(ready >= 0 || errno == EINTR, "launch", "poll");
}

}  // namespace lockstep::launcher
