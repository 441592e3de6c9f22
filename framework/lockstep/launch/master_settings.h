// A job by the address of its first host, as torchrun's users have it: MASTER_ADDR, MASTER_PORT, NNODES, NODE_RANK,
// NPROC_PER_NODE. The other hosts have no names; each comes by itself (`lockstep launch`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/launch/settings.h"

namespace lockstep::launch {

inline constexpr std::int64_t kDefaultMasterPort = 29500;  // torchrun's

struct MasterSettings {
  std::string address;  // of rank 0's host: a name or an address, IPv6 without brackets
  std::int64_t port = kDefaultMasterPort;
  std::int64_t nodes = 1;
  std::optional<std::int64_t> node_rank{};
  std::int64_t ranks_per_node = 0;  // 0: not said
  std::string origin{};             // of MASTER_ADDR
};

// Throws Error where MASTER_ADDR is not set, a number is none, NODE_RANK is not below NNODES, or WORLD_SIZE or
// LOCAL_WORLD_SIZE disagree with the other counts. GROUP_RANK, torchrun's name of NODE_RANK, is taken too.
MasterSettings master_settings(const Settings& settings);

}  // namespace lockstep::launch
