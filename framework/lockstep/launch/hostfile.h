// Hostfiles as Open MPI 4.1 reads them: a line `[USER@]NAME [slots=N] [max_slots=N]` per host, '#' begins a comment.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/launch/host_list.h"

namespace lockstep::launch {

// `file` is the name that errors give, with the line. A host on several lines without slots= has one slot for each;
// slots= in a second line is an error, as Open MPI ends there. A host with slots=0 takes no rank and is left out.
HostList parse_hostfile(std::string_view text, const std::string& file);

// The same text without the lines of the hosts in `lost`, named as by Host::login().
std::string hostfile_without(std::string_view text, std::span<const std::string> lost);

// A line per host, and before them one for each line of `comment`, with "# " in front.
std::string to_hostfile(const HostList& list, std::string_view comment = "");

}  // namespace lockstep::launch
