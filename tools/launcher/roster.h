// The nodes of a job as they come, on node 0: who is there, who is missing, and where their commands differ. Pure. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/launcher/messages.h"

namespace lockstep::launcher {

class Roster {
 public:
  // Node 0 is in; it says how many nodes there are, and its command is what others are compared with.
  explicit Roster(const Join& own);

  // Why this node cannot be in the job, as others are: another number of nodes, a number that is taken, a host name
  // that is. Empty: it is in now.
  std::string add(const Join& join, const std::string& peer);
  // It has gone before the job began, and may come again.
  void remove(int node);

  bool complete() const;
  std::string missing() const;          // "nodes 1, 3"
  std::string present() const;          // "0 (a), 2 (c, 10.0.0.2:4711)"
  std::string name_of(int node) const;  // "node 2 (c, 10.0.0.2:4711)"
  const Join& join(int node) const { return *nodes_.at(static_cast<std::size_t>(node)).join; }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  int ranks() const;

  // The reasons why the nodes that are there are not one job: programs that are missing anyhow, and Lockstep, MPI,
  // programs and arguments that differ from node 0's. `differences`: programs, arguments and Lockstep may differ.
  std::vector<std::string> problems(bool differences) const;
  // The one network in which all nodes reach node 0; "": there are several, or it is unknown.
  std::string network() const;

 private:
  struct Node {
    std::optional<Join> join{};
    std::string peer{};
  };
  std::vector<Node> nodes_;
};

// The words without the --resume that a supervisor adds on the node where it runs.
std::vector<std::string> without_resume(const std::vector<std::string>& words);

}  // namespace lockstep::launcher
