// The hosts of a job, as Open MPI's hostfiles and --host lists name them, and the number of ranks that the remaining
// hosts take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::supervisor {

struct Host {
  std::string name;        // as it is given to ssh: perhaps user@name
  std::int64_t slots = 0;  // 0: not given, Open MPI takes one per core
  bool operator==(const Host&) const = default;
};

// Lines `name [slots=N] [max_slots=N]`, '#' begins a comment; a host on several lines has the sum of their slots.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& place);

// `a:4,b,b`: without a count one slot each time a host is named.
std::vector<Host> parse_host_list(std::string_view text);

// The same text without the lines or entries of the hosts in `lost`.
std::string hostfile_without(std::string_view text, std::span<const std::string> lost);
std::string host_list_without(std::string_view text, std::span<const std::string> lost);

// Ranks for the hosts in `alive`, at most `wanted`, which all hosts took: as many as there are slots, or in proportion
// where slots are not said or fewer than `wanted`. std::nullopt, mpirun's own choice, stays that.
std::optional<std::int64_t> ranks_for(std::span<const Host> alive, std::span<const Host> all,
                                      std::optional<std::int64_t> wanted);

// Whether `name` means the machine this runs on, which mpirun reaches without ssh.
bool is_this_machine(std::string_view name);

}  // namespace lockstep::supervisor
