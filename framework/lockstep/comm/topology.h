// Which ranks share a node. Two ranks do when their NodeIdentity is the same text: host name, boot of the kernel, and
// the namespaces that shared memory needs, so two machines with one host name, or two containers on one machine, stay
// apart. A value without MPI: every rank holds the same Topology of its communicator.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

struct NodeIdentity {
  std::string host;  // for messages; several nodes may bear one name
  std::string key;   // equal only between processes that can share memory
};

// This process's identity. `sharing_domain` (a NUMA node's name, for example) cuts nodes further; empty for whole
// nodes.
NodeIdentity detect_identity(const std::string& sharing_domain);

class Topology {
 public:
  Topology() = default;
  // One entry per rank. Nodes are numbered by their lowest rank, local ranks follow the order of ranks.
  explicit Topology(std::span<const NodeIdentity> ranks);
  Topology(std::vector<std::string> hosts, const std::vector<int>& node_of);

  int node_of(int rank) const { return node_of_.at(static_cast<std::size_t>(rank)); }
  int local_rank(int rank) const { return local_rank_.at(static_cast<std::size_t>(rank)); }
  int local_size(int rank) const { return node_sizes_[static_cast<std::size_t>(node_of(rank))]; }
  int node_count() const { return static_cast<int>(node_sizes_.size()); }
  const std::string& host(int rank) const { return hosts_.at(static_cast<std::size_t>(rank)); }

  // The topology of a communicator whose rank i is this one's ranks[i].
  Topology restricted_to(std::span<const int> ranks) const;

 private:
  std::vector<std::string> hosts_;
  std::vector<int> node_of_, local_rank_, node_sizes_;
};

}  // namespace lockstep::comm
