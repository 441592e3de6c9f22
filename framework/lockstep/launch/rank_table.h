// Rank tables, the JSON files that list each rank with its host and the address of its device. Two forms are read:
// version 1.0 (server_count, server_list[] with server_id and device[] of device_id, device_ip, rank_id; status), and
// the older one (group_list[] with instance_list[] of server_id, rank_id and devices[]). Numbers may stand in quotes.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

struct RankTableRules {
  // Addresses of devices with one position on their hosts have to agree in this many first bits; 0: 24, with IPv6 64.
  int prefix = 0;
};

// One host per server, its slots and addresses those of its devices in the order of ranks. Throws Error, with file and
// line, where ranks are missing, doubled or out of order, counts disagree, a server or an address is there twice, an
// address is none or lies in another network than its counterparts, or the table is not "completed".
HostList parse_rank_table(std::string_view text, const std::string& file, const RankTableRules& rules = {});

// Version 1.0. Every host's slots have to be said.
std::string to_rank_table(const HostList& list);

}  // namespace lockstep::launch
