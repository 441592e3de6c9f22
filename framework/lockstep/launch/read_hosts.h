// A job's hosts from whatever a user has: a list, a file of any of the forms, or the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/launch/host_list.h"
#include "lockstep/launch/master_settings.h"
#include "lockstep/launch/rank_table.h"
#include "lockstep/launch/settings.h"

namespace lockstep::launch {

enum class HostsForm : std::uint8_t { HostList, Hostfile, Slurm, Master, RankTable };

std::string_view name_of(HostsForm form);  // "hostfile", as --from takes it
std::optional<HostsForm> hosts_form(std::string_view name);

struct HostsRead {
  HostsForm form = HostsForm::Hostfile;
  HostList list{};  // Master with several nodes: the first alone
  std::optional<MasterSettings> master{};
};

// The form that a file's text has by its looks: '{' begins a rank table, NAME=VALUE settings.
HostsForm form_of_text(std::string_view text);

// Throws Error for what is wrong in it.
HostsRead read_hosts_text(std::string_view text, const std::string& file, HostsForm form,
                          const RankTableRules& rules = {});

// SLURM_* before MASTER_ADDR; with `form`, that one. Nothing: neither is set.
std::optional<HostsRead> read_hosts_settings(const Settings& settings, std::optional<HostsForm> form = {});

// Whole text of a file of at most 16 MiB; "-" is standard input. Throws Error with path and reason.
std::string read_small_file(const std::string& path);

}  // namespace lockstep::launch
