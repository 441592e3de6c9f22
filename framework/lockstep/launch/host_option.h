// Lists of hosts as mpirun -H and horovodrun -H take them: `a:8,b:8`; `me@a:8`; an IPv6 address as `[fd00::1]:8`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

// Without a count a host has one slot each time it is named; `a:*` leaves the number to Open MPI. `option` is the name
// that errors give.
HostList parse_host_list(std::string_view text, const std::string& option = "-H");

// The same text without the entries of the hosts in `lost`, named as by Host::login().
std::string host_list_without(std::string_view text, std::span<const std::string> lost);

// `a:8,b:8`, for parse_host_list(). Open MPI 4.1 takes no USER@ and no IPv6 address in its -H.
std::string to_host_list(const HostList& list);

}  // namespace lockstep::launch
