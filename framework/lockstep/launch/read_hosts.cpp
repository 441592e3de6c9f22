#include "lockstep/launch/read_hosts.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/slurm_nodes.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "hosts";
constexpr std::array<std::pair<HostsForm, std::string_view>, 5> kForms{{{HostsForm::HostList, "host-list"},
                                                                        {HostsForm::Hostfile, "hostfile"},
                                                                        {HostsForm::Slurm, "slurm"},
                                                                        {HostsForm::Master, "master"},
                                                                        {HostsForm::RankTable, "rank-table"}}};

HostsRead of_master(const Settings& settings) {
  HostsRead read{.form = HostsForm::Master, .master = master_settings(settings)};
  read.list.hosts.push_back(
      {.name = read.master->address, .slots = read.master->ranks_per_node, .origin = read.master->origin});
  return read;
}

}  // namespace

std::string_view name_of(HostsForm form) {
  for (const auto& [each, name] : kForms) {
    if (each == form) return name;
  }
  return "";
}

std::optional<HostsForm> hosts_form(std::string_view name) {
  for (const auto& [form, each] : kForms) {
    if (each == name) return form;
  }
  return std::nullopt;
}

HostsForm form_of_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with('{')) return HostsForm::RankTable;
    if (line.starts_with("export ")) line.remove_prefix(7);
    const std::size_t name = std::min(line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"), line.size());
    if (name > 0 && name < line.size() && line[name] == '=') {
      return text.find("MASTER_ADDR=") == text.npos ? HostsForm::Slurm : HostsForm::Master;
    }
    return line.find(',') != line.npos && line.find_first_of(" \t") == line.npos ? HostsForm::HostList
                                                                                 : HostsForm::Hostfile;
  }
  return HostsForm::Hostfile;
}

HostsRead read_hosts_text(std::string_view text, const std::string& file, HostsForm form, const RankTableRules& rules) {
  HostsRead read{.form = form};
  switch (form) {
    case HostsForm::HostList: {
      while (text.ends_with('\n')) text.remove_suffix(1);
      read.list = parse_host_list(text, file);
      break;
    }
    case HostsForm::Hostfile:
      read.list = parse_hostfile(text, file);
      break;
    case HostsForm::RankTable:
      read.list = parse_rank_table(text, file, rules);
      break;
    case HostsForm::Slurm:
      read.list = slurm_hosts(Settings::of_text(text, file));
      break;
    case HostsForm::Master:
      return of_master(Settings::of_text(text, file));
  }
  return read;
}

std::optional<HostsRead> read_hosts_settings(const Settings& settings, std::optional<HostsForm> form) {
  const bool slurm = settings.find("SLURM_JOB_NODELIST") != nullptr || settings.find("SLURM_NODELIST") != nullptr;
  if (form == HostsForm::Slurm || (!form && slurm))
    return HostsRead{.form = HostsForm::Slurm, .list = slurm_hosts(settings)};
  if (form == HostsForm::Master || (!form && settings.find("MASTER_ADDR") != nullptr)) return of_master(settings);
  return std::nullopt;
}

std::string read_small_file(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  std::string text;
  std::ifstream file;
  if (path != "-") {
    std::error_code error;  // a directory can be opened, and then not be read
    file.open(path, std::ios::binary);
    check(file.is_open(), kSite, "{} cannot be read: {}", path, std::strerror(errno));
    check(!std::filesystem::is_directory(path, error), kSite, "{} is a directory, expected a file", path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::array<char, 65536> block{};
  while (in.read(block.data(), block.size()), in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    check(text.size() <= kMost, kSite, "{} has more than {} MiB, expected a list of hosts", path, kMost >> 20);
  }
  check(!in.bad(), kSite, "{} cannot be read to its end", path);
  return text;
}

}  // namespace lockstep::launch
