#include "tools/launcher/rendezvous.h"

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilent = 10s;  // for a node that knows the secret and does not say who it is
constexpr std::size_t kMostLeaving = 64;

}  // namespace

Rendezvous::Rendezvous(Reception reception, const Join& own, Welcome welcome, Say say)
    : reception_(std::move(reception)), roster_(own), welcome_(welcome), say_(std::move(say)) {}

void Rendezvous::add_files(std::vector<pollfd>& files) const {
  reception_.add_files(files);
  for (const auto& connection : known_) files.push_back(connection->wanted());
  for (const auto& [node, connection] : nodes_) files.push_back(connection->wanted());
  for (const auto& connection : leaving_) files.push_back(connection->wanted());
}

std::vector<Rendezvous::News> Rendezvous::look() {
  for (auto& connection : reception_.look()) known_.push_back(std::move(connection));
  read_joins();
  for (auto& connection : leaving_) connection->pump();
  std::erase_if(leaving_, [](const auto& connection) { return connection->closed(); });
  return read_nodes();
}

void Rendezvous::read_joins() {
  Connections still;
  for (auto& connection : known_) {
    connection->pump();
    try {
      if (const auto message = connection->next()) {
        if (!take_in(connection, *message)) leaving_.push_back(std::move(connection));
        continue;
      }
    } catch (const Error& error) {
      connection->close(error.what());
    }
    const bool late = Connection::Clock::now() > connection->began() + 2 * kSilent;
    if (!connection->closed() && !late) {
      still.push_back(std::move(connection));
    } else {
      say_(formatted("{} knows the secret, but did not join: {}", connection->peer(),
                     late                            ? "it says nothing"
                     : connection->problem().empty() ? "it has gone"
                                                     : connection->problem()));
    }
  }
  known_ = std::move(still);
  if (leaving_.size() > kMostLeaving) leaving_.erase(leaving_.begin());
}

// False: it is refused, and told why.
bool Rendezvous::take_in(std::unique_ptr<Connection>& connection, const Message& message) {
  check(message.kind == Kind::Join, "launch", "its first message is of kind {}, expected a join",
        static_cast<int>(message.kind));
  const Join join = read_join(message);
  const std::string refusal = roster_.add(join, connection->peer());
  if (!refusal.empty()) {
    say_(refusal + "; the second is refused");
    connection->send(refused(refusal));
    return false;
  }
  connection->send(to_message(welcome_));
  nodes_[join.node] = std::move(connection);
  return true;
}

std::vector<Rendezvous::News> Rendezvous::read_nodes() {
  std::vector<News> news;
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    auto& [node, connection] = *at;
    connection->pump();
    while (auto message = connection->next()) news.push_back({.node = node, .message = *std::move(message)});
    if (!connection->closed()) {
      ++at;
      continue;
    }
    const std::string& problem = connection->problem();
    news.push_back({.node = node, .lost = problem.empty() ? "its launcher has ended" : problem});
    if (!job_) {
      say_(formatted("{} has gone: {}", roster_.name_of(node), news.back().lost));
      roster_.remove(node);
    }
    at = nodes_.erase(at);
  }
  return news;
}

void Rendezvous::send(int node, const Message& message) {
  if (const auto found = nodes_.find(node); found != nodes_.end()) found->second->send(message);
}

void Rendezvous::send_all(const Message& message) {
  for (auto& [node, connection] : nodes_) connection->send(message);
}

void Rendezvous::flush(std::chrono::milliseconds limit) {
  const auto until = Connection::Clock::now() + limit;
  const auto is_waiting = [](const auto& connection) { return !connection->all_sent(); };
  for (;;) {
    const bool waits = std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& n) { return is_waiting(n.second); }) ||
                       std::any_of(leaving_.begin(), leaving_.end(), is_waiting);
    if (!waits || Connection::Clock::now() > until) return;
    std::vector<pollfd> files;
    for (auto& [node, connection] : nodes_) files.push_back(connection->wanted());
    for (auto& connection : leaving_) files.push_back(connection->wanted());
    wait_for(files, 50ms);
    for (auto& [node, connection] : nodes_) connection->pump();
    for (auto& connection : leaving_) connection->pump();
  }
}

}  // namespace lockstep::launcher
