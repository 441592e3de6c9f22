#include "tools/launcher/roster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

std::string word_at(const std::vector<std::string>& words, std::size_t at) {
  return at < words.size() ? fmt::format("'{}'", words[at]) : "nothing";
}

// The first argument in which two commands differ; empty: none.
std::string difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i] != b[i])
      return fmt::format("{} is {}, on node 0 {}", i == 0 ? "the program" : fmt::format("argument {}", i),
                         word_at(b, i), word_at(a, i));
  }
  return "";
}

}  // namespace

std::vector<std::string> without_resume(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--resume" && i + 1 < words.size()) {
      ++i;
    } else if (!words[i].starts_with("--resume=")) {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

Roster::Roster(const Join& own) : nodes_(static_cast<std::size_t>(own.nodes)) {
  check(own.node == 0, "launch", "the roster is node {}'s, expected node 0's", own.node);
  nodes_[0].join = own;
}

std::string Roster::add(const Join& join, const std::string& peer) {
  if (join.nodes != nodes())
    return fmt::format("node {} ({}, {}) was started with --nnodes {}, node 0 with {}", join.node, join.host, peer,
                       join.nodes, nodes());
  if (join.node < 0 || join.node >= nodes())
    return fmt::format("{} ({}) was started with --node-rank {}, expected 0 to {}", join.host, peer, join.node,
                       nodes() - 1);
  Node& node = nodes_[static_cast<std::size_t>(join.node)];
  if (node.join)
    return fmt::format("--node-rank {} is there twice: {} and {}", join.node, name_of(join.node),
                       fmt::format("{} ({})", join.host, peer));
  for (int other = 0; other < nodes(); ++other) {
    const Node& there = nodes_[static_cast<std::size_t>(other)];
    if (there.join && there.join->host == join.host)
      return fmt::format(
          "two nodes have the host name '{}', which Open MPI takes for one host: {} and node {} ({}); "
          "give each a name of its own",
          join.host, name_of(other), join.node, peer);
  }
  node = {join, peer};
  return "";
}

void Roster::remove(int node) { nodes_.at(static_cast<std::size_t>(node)) = {}; }

bool Roster::complete() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.join.has_value(); });
}

std::string Roster::missing() const {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].join) numbers.push_back(i);
  }
  return fmt::format("node{} {}", numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "));
}

std::string Roster::present() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].join) names.push_back(name_of(static_cast<int>(i)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Roster::name_of(int node) const {
  const Node& found = nodes_.at(static_cast<std::size_t>(node));
  return fmt::format("node {} ({}{}{})", node, found.join ? found.join->host : "not there",
                     found.peer.empty() ? "" : ", ", found.peer);
}

int Roster::ranks() const {
  int sum = 0;
  for (const Node& node : nodes_) sum += node.join ? node.join->ranks : 0;
  return sum;
}

std::vector<std::string> Roster::problems(bool differences) const {
  std::vector<std::string> found;
  const Join& first = *nodes_[0].join;
  for (int i = 0; i < nodes(); ++i) {
    const auto& join = nodes_[static_cast<std::size_t>(i)].join;
    if (!join) continue;
    const auto add = [&](const std::string& text) { found.push_back(fmt::format("{}: {}", name_of(i), text)); };
    if (!join->problem.empty()) {
      add(join->problem);
      continue;
    }
    if (join->mpi != first.mpi) add(fmt::format("its MPI is '{}', on node 0 '{}'", join->mpi, first.mpi));
    if (differences) continue;
    if (join->version != first.version)
      add(fmt::format("its Lockstep is {}, on node 0 {}", join->version, first.version));
    const std::string words = difference(without_resume(first.words), without_resume(join->words));
    if (!words.empty()) {
      add(words);
    } else if (join->program != first.program && first.problem.empty()) {
      add(fmt::format("its '{}' is another file than node 0's (SHA-256 {} and {})", join->words[0],
                      join->program.substr(0, 12), first.program.substr(0, 12)));
    }
  }
  return found;
}

std::string Roster::network() const {
  std::string network;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const std::string own = nodes_[i].join ? nodes_[i].join->network : "";
    if (own.empty() || (!network.empty() && own != network)) return "";
    network = own;
  }
  return network;
}

}  // namespace lockstep::launcher
