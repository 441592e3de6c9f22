#include "lockstep/launch/master_settings.h"

#include "lockstep/core/error.h"
#include "lockstep/launch/host_list.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "settings";
constexpr std::int64_t kMostNodes = 65536;

void check_counts(const MasterSettings& master, const Settings& settings) {
  const auto local = settings.number("LOCAL_WORLD_SIZE", 1, kMostSlots);
  check(!local || *local == master.ranks_per_node, kSite, "{} is {}, but NPROC_PER_NODE is {}; expected the same",
        local ? settings.find("LOCAL_WORLD_SIZE")->origin : "", local.value_or(0), master.ranks_per_node);
  const auto world = settings.number("WORLD_SIZE", 1, kMostNodes * kMostSlots);
  check(!world || master.ranks_per_node == 0 || *world == master.nodes * master.ranks_per_node, kSite,
        "{} is {}, but NNODES x NPROC_PER_NODE is {} x {} = {}; expected the same",
        world ? settings.find("WORLD_SIZE")->origin : "", world.value_or(0), master.nodes, master.ranks_per_node,
        master.nodes * master.ranks_per_node);
}

}  // namespace

MasterSettings master_settings(const Settings& settings) {
  const Setting* address = settings.find("MASTER_ADDR");
  check(address != nullptr, kSite, "MASTER_ADDR is not set, expected the name or address of rank 0's host");
  MasterSettings master{.address = address->value, .origin = address->origin};
  if (master.address.starts_with('[') && master.address.ends_with(']'))
    master.address = master.address.substr(1, master.address.size() - 2);
  check(master.address.find('@') == master.address.npos, kSite, "{} is '{}', expected a name or address without a user",
        address->origin, address->value.substr(0, 80));
  check_host_name(kSite, address->origin, master.address);
  master.port = settings.number("MASTER_PORT", 1, 65535).value_or(kDefaultMasterPort);
  master.nodes = settings.number("NNODES", 1, kMostNodes).value_or(1);
  const char* rank_name = settings.find("NODE_RANK") != nullptr ? "NODE_RANK" : "GROUP_RANK";
  if (const auto rank = settings.number(rank_name, 0, kMostNodes)) {
    check(*rank < master.nodes, kSite, "{} is {} and NNODES is {}, expected a rank from 0 to {}",
          settings.find(rank_name)->origin, *rank, master.nodes, master.nodes - 1);
    master.node_rank = rank;
  }
  const auto ranks = settings.number("NPROC_PER_NODE", 1, kMostSlots);
  master.ranks_per_node = ranks ? *ranks : settings.number("LOCAL_WORLD_SIZE", 1, kMostSlots).value_or(0);
  check_counts(master, settings);
  return master;
}

}  // namespace lockstep::launch
