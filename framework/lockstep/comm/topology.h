// Tells which ranks share a node. Two ranks share a node if their NodeIdentity has the same key: host name, boot id of
// the kernel, and the namespaces of shared memory. So two machines with one host name, or two containers on one
// machine, are different nodes. A value without MPI: all ranks of a communicator have the same Topology.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

struct NodeIdentity {
  std::string host;  // for messages; several nodes may have one name
  std::string key;   // equal only for processes that can share memory
};

// Returns this process's identity. `sharing_domain` (the name of a NUMA node, for example) divides nodes further;
// empty: whole nodes.
NodeIdentity detect_identity(const std::string& sharing_domain);

class Topology {
 public:
  Topology() = default;
  // Takes one identity per rank. Nodes are numbered by their lowest rank, local ranks by the order of ranks.
  explicit Topology(std::span<const NodeIdentity> ranks);
  Topology(std::vector<std::string> hosts, const std::vector<int>& node_of);

  int node_of(int rank) const { return node_of_.at(static_cast<std::size_t>(rank)); }
  int local_rank(int rank) const { return local_rank_.at(static_cast<std::size_t>(rank)); }
  int local_size(int rank) const { return node_sizes_[static_cast<std::size_t>(node_of(rank))]; }
  int node_count() const { return static_cast<int>(node_sizes_.size()); }
  const std::string& host(int rank) const { return hosts_.at(static_cast<std::size_t>(rank)); }

  // Returns the topology of a communicator whose rank i is ranks[i] here.
  Topology restricted_to(std::span<const int> ranks) const;

 private:
  std::vector<std::string> hosts_;
  std::vector<int> node_of_, local_rank_, node_sizes_;
};

}  // namespace lockstep::comm
