#include "lockstep/comm/topology.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "lockstep/core/error.h"
#include "lockstep/host/network.h"

namespace lockstep::comm {
namespace {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string namespace_link(const char* path) {
  char target[128] = {};
  const ssize_t length = readlink(path, target, sizeof(target) - 1);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "none";
}

// Returns the device of /dev/shm, which differs between two containers of one kernel: neither sees the other's windows.
std::string shared_memory_device() {
  struct stat status {};
  return stat("/dev/shm", &status) == 0 ? formatted("{}", status.st_dev) : "none";
}

}  // namespace

NodeIdentity detect_identity(const std::string& sharing_domain) {
  const std::string host = host::host_name();
  return {.host = host,
          .key = formatted("{}|{}|{}|{}|{}|{}", host, boot_id(), namespace_link("/proc/self/ns/ipc"),
                           namespace_link("/proc/self/ns/net"), shared_memory_device(), sharing_domain)};
}

Topology::Topology(std::vector<std::string> hosts, const std::vector<int>& node_of) : hosts_(std::move(hosts)) {
  check(hosts_.size() == node_of.size(), "topology", "{} host names for {} ranks", hosts_.size(), node_of.size());
  std::map<int, int> dense;
  for (const int node : node_of) {
    const int id = dense.try_emplace(node, static_cast<int>(dense.size())).first->second;
    if (id == static_cast<int>(node_sizes_.size())) {
      node_sizes_.push_back(0);
    }
    node_of_.push_back(id);
    local_rank_.push_back(node_sizes_[static_cast<std::size_t>(id)]++);
  }
}

Topology::Topology(std::span<const NodeIdentity> ranks) {
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  std::map<std::string, int> known;
  for (const NodeIdentity& rank : ranks) {
    hosts.push_back(rank.host);
    nodes.push_back(known.try_emplace(rank.key, static_cast<int>(known.size())).first->second);
  }
  *this = Topology(std::move(hosts), nodes);
}

Topology Topology::restricted_to(std::span<const int> ranks) const {
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  for (const int rank : ranks) {
    hosts.push_back(host(rank));
    nodes.push_back(node_of(rank));
  }
  return {std::move(hosts), nodes};
}

}  // namespace lockstep::comm
