#include "tools/watch/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <utility>

#include "lockstep/core/error.h"
#include "tools/report/page.h"

namespace lockstep::tools {
namespace {

constexpr const char* kWatchSite = "watch";
constexpr std::size_t kMostClients = 64, kLongestHead = 16 << 10;
constexpr std::chrono::seconds kClientTime{
    10};  // for a request, and between two parts of its answer that a client takes
constexpr int kLookMs = 500;

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Internal Server Error";
  }
}

// Returns the bytes of an answer. The address contains the token, so no other page may learn it by a referrer.
std::string bytes_of(const HttpAnswer& answer, bool head_only) {
  std::string bytes = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "Content-Security-Policy: {}; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"
      "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n",
      answer.status, reason_of(answer.status), answer.type, answer.body.size(), kPagePolicy);
  if (answer.status == 405) bytes += "Allow: GET, HEAD\r\n";
  if (!answer.etag.empty()) bytes += fmt::format("ETag: {}\r\n", answer.etag);
  bytes += "\r\n";
  if (!head_only && answer.status != 304) bytes += answer.body;
  return bytes;
}

HttpAnswer refusal(int status, std::string text) { return {.status = status, .body = std::move(text)}; }

bool would_wait(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == EINTR; }

}  // namespace

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
  check_call(n == static_cast<ssize_t>(bytes.size()), kWatchSite, "the system gives no random numbers for a token");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

HttpServer::HttpServer(int port, Handler handler)
    : handler_(std::move(handler)),
      token_(new_token()),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  check_call(listener_.open(), kWatchSite, "cannot make a socket");
  const int yes = 1;
  check_call(::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0, kWatchSite,
             "cannot set up a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check_call(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, kWatchSite,
             "cannot listen at port {} of 127.0.0.1, expected a free --port, or 0 for any", port);
  check_call(::listen(listener_.get(), 16) == 0, kWatchSite, "cannot listen at port {} of 127.0.0.1", port);
}

int HttpServer::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check_call(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, kWatchSite,
             "cannot ask for the port");
  return ntohs(address.sin_port);
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}/{}/", port(), token_); }

void HttpServer::serve(const std::function<bool()>& goes_on) {
  while (goes_on()) {
    std::vector<pollfd> waits{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Client& client : clients_) {
      const short events = static_cast<short>(client.answer.empty() ? POLLIN : POLLOUT);
      waits.push_back({.fd = client.socket.get(), .events = events, .revents = 0});
    }
    const int ready = ::poll(waits.data(), waits.size(), kLookMs);
    check_call(ready >= 0 || errno == EINTR, kWatchSite, "cannot wait for requests");
    std::vector<Client> left;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const bool is_ready = ready > 0 && waits[i + 1].revents != 0;
      const bool stays = is_ready ? go_on_with(clients_[i]) : Clock::now() < clients_[i].deadline;
      if (stays) left.push_back(std::move(clients_[i]));
    }
    clients_ = std::move(left);
    if (ready > 0 && waits[0].revents != 0) accept_clients();
  }
}

void HttpServer::accept_clients() {
  while (true) {
    io::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) return;                                             // none waits, or it has gone already
    if (clients_.size() >= kMostClients) clients_.erase(clients_.begin());  // the oldest
    clients_.push_back({.socket = std::move(socket), .deadline = Clock::now() + kClientTime, .head = {}});
  }
}

bool HttpServer::go_on_with(Client& client) {
  if (Clock::now() >= client.deadline) return false;
  if (client.answer.empty() && !receive(client)) return false;
  return client.answer.empty() || send(client);
}

bool HttpServer::receive(Client& client) {
  std::array<char, 4096> block{};
  const ssize_t n = ::recv(client.socket.get(), block.data(), block.size(), 0);
  if (n < 0) return would_wait(errno);
  if (n == 0) return false;
  client.head.append(block.data(), static_cast<std::size_t>(n));
  const std::size_t end = client.head.find("\r\n\r\n");
  if (end != std::string::npos)
    client.answer = answer_to(std::string_view(client.head).substr(0, end + 4));
  else if (client.head.size() > kLongestHead)
    client.answer = bytes_of(refusal(400, "The request is too long.\n"), false);
  return true;
}

// Returns false when all is sent, or nobody reads any more.
bool HttpServer::send(Client& client) {
  const ssize_t n = ::send(client.socket.get(), client.answer.data(), client.answer.size(), MSG_NOSIGNAL);
  if (n < 0) return would_wait(errno);
  client.answer.erase(0, static_cast<std::size_t>(n));
  client.deadline = Clock::now() + kClientTime;  // a slow reader still reads
  if (!client.answer.empty()) return true;
  ::shutdown(client.socket.get(), SHUT_WR);
  return false;
}

std::string HttpServer::answer_to(std::string_view head) const {
  const auto request = parse_request(head);
  if (!request) return bytes_of(refusal(400, "This is no HTTP request.\n"), false);
  return bytes_of(handle(*request), request->method == "HEAD");
}

HttpAnswer HttpServer::handle(const HttpRequest& request) const {
  if (!is_loopback_name(request.host))
    return refusal(403, "Host names another machine; expected 127.0.0.1 or localhost.\n");
  const std::string_view path = request.path;
  const std::size_t end = std::min(path.find('/', 1), path.size());
  if (!equal_secrets(path.substr(1, end - 1), token_))
    return refusal(403, "The token is missing or wrong; open the address that lockstep watch has printed.\n");
  if (request.method != "GET" && request.method != "HEAD") return refusal(405, "Expected GET or HEAD.\n");
  try {
    return handler_(std::string(path.substr(end)), request);
  } catch (const std::exception& error) {
    return refusal(500, fmt::format("{}\n", error.what()));
  }
}

}  // namespace lockstep::tools
