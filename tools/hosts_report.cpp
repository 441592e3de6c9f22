#include "tools/hosts_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/rank_table.h"
#include "lockstep/launch/slurm_nodes.h"

namespace lockstep::tools {
namespace {

std::string ranks_of(const launch::Host& host, std::int64_t first) {
  if (host.slots == 0) return "one rank per core";
  return host.slots == 1 ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, first + host.slots - 1);
}

std::string summary(const HostsReport& report) {
  const launch::HostList& list = report.read.list;
  const bool all = report.has_all_hosts();
  const std::int64_t hosts = all ? static_cast<std::int64_t>(list.hosts.size()) : report.read.master->nodes;
  const std::int64_t ranks = all ? list.slots() : hosts * report.read.master->ranks_per_node;
  const bool said = list.all_slots_said();
  return fmt::format("{} host{}, {} ({} as {})", hosts, hosts == 1 ? "" : "s",
                     said ? fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s") : "number of ranks not said",
                     report.source, launch::name_of(report.read.form));
}

}  // namespace

std::vector<std::string> HostsReport::start_words() const {
  if (has_all_hosts()) return launch::mpirun_words(read.list, command);
  const launch::MasterSettings& master = *read.master;
  std::vector<std::string> words{"lockstep",    "launch",
                                 "--nnodes",    std::to_string(master.nodes),
                                 "--node-rank", master.node_rank ? std::to_string(*master.node_rank) : "I"};
  if (master.ranks_per_node > 0) words.insert(words.end(), {"--nproc-per-node", std::to_string(master.ranks_per_node)});
  words.insert(words.end(), {"--master-addr", master.address});
  if (command.ports)
    words.insert(words.end(), {"--ports", command.ports->all.str()});
  else
    words.insert(words.end(), {"--master-port", std::to_string(master.port)});
  words.insert(words.end(), command.program.begin(), command.program.end());
  return words;
}

std::vector<std::string> HostsReport::port_commands() const {
  const bool known = host::parse_network(network.include).has_value();
  return launch::port_commands(command.ports->all, known ? network.include : "");
}

std::string as_text(const HostsReport& report) {
  std::string text = fmt::format("hosts: {}\n", summary(report));
  std::int64_t rank = 0;
  for (const launch::Host& host : report.read.list.hosts) {
    text += fmt::format("  {:<20} {:<18} {}\n", host.login(), ranks_of(host, rank), host.origin);
    rank += host.slots;
  }
  if (!report.has_all_hosts()) text += "  the other hosts come by themselves, each with its own --node-rank\n";
  if (!report.network.include.empty())
    text += fmt::format("network: {} ({})\n", report.network.include, report.network.reason);
  for (const std::string& note : report.port_notes) text += note + "\n";
  return text + "start:\n  " + launch::shell_line(report.start_words()) + "\n";
}

std::string as_json(const HostsReport& report) {
  nlohmann::ordered_json json;
  json["form"] = launch::name_of(report.read.form);
  json["ranks"] = report.read.list.all_slots_said() && report.has_all_hosts() ? report.read.list.slots() : 0;
  json["hosts"] = nlohmann::ordered_json::array();
  for (const launch::Host& host : report.read.list.hosts) {
    json["hosts"].push_back({{"name", host.name},
                             {"user", host.user},
                             {"slots", host.slots},
                             {"max_slots", host.max_slots},
                             {"addresses", host.addresses},
                             {"origin", host.origin}});
  }
  json["network"] = report.network.include;
  json["warnings"] = report.network.warnings;
  if (report.command.ports) {
    const launch::PortPlan& plan = *report.command.ports;
    json["ports"] = {{"all", plan.all.str()},
                     {"daemons", {plan.daemon_v4, plan.daemon_v6}},
                     {"ranks", plan.ranks.str()},
                     {"commands", report.port_commands()}};
  }
  json["start"] = report.start_words();
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string converted(const HostsReport& report, const std::string& form) {
  if (form == "mpirun") return launch::shell_line(report.start_words()) + "\n";
  check(report.has_all_hosts(), "hosts",
        "{}: only rank 0's host is known, so no {} can be made; expected a list of hosts", report.source, form);
  if (form == "hostfile") return launch::to_hostfile(report.read.list, "from " + report.source);
  if (form == "host-list") return launch::to_host_list(report.read.list) + "\n";
  if (form == "rank-table") return launch::to_rank_table(report.read.list);
  check(report.read.list.all_slots_said(), "hosts", "{}: ranks of each host are not said; expected slots, or --slots N",
        report.source);
  return fmt::format("SLURM_JOB_NODELIST={}\nSLURM_TASKS_PER_NODE='{}'\n", launch::to_node_list(report.read.list),
                     launch::to_task_counts(report.read.list));
}

}  // namespace lockstep::tools
