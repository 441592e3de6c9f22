#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/launch.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/launch/host_option.h"
#include "tools/commands.h"
#include "tools/hosts_report.h"

namespace lockstep::tools {
namespace {

constexpr const char* kHostsHelp = R"(Examples:
  lockstep hosts --file hosts -- scripts/train.sh ./train_resnet       checks a hostfile, prints the command
  lockstep hosts -H a:8,b:8 --to hostfile > hosts
  lockstep hosts --file table.json --to hostfile > hosts               a rank table
  lockstep hosts --file hosts --ports 60000-60015                      ports, kernel and firewall lines
Without --file and -H the environment is read: Slurm's variables, or MASTER_ADDR, MASTER_PORT, NNODES, NPROC_PER_NODE.
Exit code: 0 the hosts are in order, 1 something is wrong with them, 2 wrong command line.)";

struct HostsOptions {
  std::string file, list, from, to, ports;
  std::string interface, policy;
  int ssh_port = 0, prefix = 0;
  std::int64_t slots = 0, threads = 0;
  bool json = false, rank_settings = false;
  std::vector<std::string> program;
};

HostsReport read_source(const HostsOptions& o) {
  const std::optional<launch::HostsForm> form = o.from.empty() ? std::nullopt : launch::hosts_form(o.from);
  if (!o.list.empty()) {
    check(o.file.empty() && (!form || form == launch::HostsForm::HostList), "hosts",
          "-H and {}, expected one source of hosts", o.file.empty() ? "--from " + o.from : "--file " + o.file);
    return {.read = {.form = launch::HostsForm::HostList, .list = launch::parse_host_list(o.list)}, .source = "-H"};
  }
  if (!o.file.empty()) {
    const std::string text = launch::read_small_file(o.file);
    HostsReport report{
        .read = launch::read_hosts_text(text, o.file, form.value_or(launch::form_of_text(text)), {.prefix = o.prefix}),
        .source = o.file};
    if (report.read.form == launch::HostsForm::Hostfile && o.file != "-") report.command.hostfile = o.file;
    return report;
  }
  auto read = launch::read_hosts_settings(launch::Settings::of_environment(), form);
  check(read.has_value(), "hosts",
        "no hosts: expected --file FILE, -H LIST, or SLURM_JOB_NODELIST or MASTER_ADDR in the environment");
  return {.read = *std::move(read), .source = "the environment"};
}

void plan_ports(HostsReport& report, const HostsOptions& o) {
  if (o.ports.empty()) return;
  const launch::HostList& list = report.read.list;
  check(list.all_slots_said(), "hosts",
        "--ports needs the number of ranks of each host; expected slots for all, or --slots N");
  const auto most = std::ranges::max_element(list.hosts, {}, &launch::Host::slots);
  const launch::PortNeed need{.ranks_per_host = most->slots, .launch = !report.has_all_hosts()};
  const launch::PortPlan plan = launch::plan_ports(launch::parse_port_range(o.ports), need);
  report.command.ports = plan;
  report.port_notes.push_back(
      fmt::format("ports on each host: {} and {} daemon (IPv4, IPv6), {}{} ranks; {} of {} needed", plan.daemon_v4,
                  plan.daemon_v6, plan.launch > 0 ? fmt::format("{} launch, ", plan.launch) : "", plan.ranks.str(),
                  launch::ports_needed(need), plan.all.count()));
  const std::int64_t again = launch::ports_needed(need, true);
  if (plan.all.count() < again) {
    report.port_notes.push_back(fmt::format(
        "  a job that starts within 60 s of the last one finds ports taken (TIME_WAIT); {} ports are enough for that",
        again));
  }
  report.port_notes.push_back("once on each host, as root:");
  for (const std::string& line : report.port_commands()) report.port_notes.push_back("  " + line);
}

// The networks of a rank table's devices, by the addresses on its first host, where this machine is in them too.
std::string networks_of_devices(const launch::HostList& list, const launch::NetworkFacts& facts) {
  std::string addresses;
  for (const std::string& address : list.hosts.front().addresses) {
    if (!address.empty()) addresses += (addresses.empty() ? "" : ",") + address;
  }
  if (addresses.empty()) return "";
  try {
    host::choose_interfaces(addresses, facts.there, facts.host);
    return addresses;
  } catch (const Error&) {  // the table is read elsewhere: the route to the hosts decides
    return "";
  }
}

void find_network(HostsReport& report, const HostsOptions& o) {
  const launch::HostList& list = report.read.list;
  check(o.policy.empty() || o.policy == "all" || o.policy == "rank", "hosts",
        "LOCKSTEP_INTERFACE_POLICY is '{}', expected all or rank", o.policy);
  if (list.hosts.size() < 2 && report.has_all_hosts()) return;
  const launch::NetworkFacts facts = launch::NetworkFacts::of_this_machine();
  const std::string devices = o.interface.empty() ? networks_of_devices(list, facts) : "";
  const std::string setting = devices.empty() ? o.interface : devices;
  report.network = launch::find_network(list, setting, facts);
  if (!devices.empty()) report.network.reason = "device_ip of the rank table";
  report.command.network = report.network.include;
  const bool several = report.network.include.find(',') != std::string::npos;
  if (o.policy == "rank" || (o.policy.empty() && !devices.empty() && several))
    report.command.interface_per_rank = setting;
}

HostsReport make_report(const HostsOptions& o) {
  HostsReport report = read_source(o);
  for (launch::Host& host : report.read.list.hosts) {
    if (host.slots > 0 || o.slots == 0) continue;
    host.slots = o.slots;
    report.command.hostfile.clear();  // it does not say them
  }
  if (report.read.master && report.read.master->ranks_per_node == 0) report.read.master->ranks_per_node = o.slots;
  const bool command = o.to.empty() || o.to == "mpirun";  // a list needs no network
  if (command) find_network(report, o);
  report.command.ssh_port = o.ssh_port;
  report.command.threads = o.threads;
  report.command.root = geteuid() == 0;
  report.command.program = o.program.empty() ? std::vector<std::string>{"PROGRAM"} : o.program;
  plan_ports(report, o);
  return report;
}

// The variables that scripts/train.sh exports before it becomes the program of one rank.
void print_rank_settings(const HostsOptions& o) {
  host::InterfaceFacts facts{.setting = o.interface,
                             .policy = o.policy,
                             .there = host::interfaces(),
                             .host = launch::NetworkFacts::of_this_machine().host,
                             .local_rank = comm::launched_local_rank(),
                             .several_hosts = comm::launched_ranks() > comm::launched_local_ranks()};
  for (const auto& [name, value] : host::interface_settings(facts)) fmt::print("{}={}\n", name, value);
}

void show(const HostsOptions& o) {
  if (o.rank_settings) return print_rank_settings(o);
  const HostsReport report = make_report(o);
  for (const std::string& warning : report.network.warnings)
    fmt::print(stderr, "lockstep: warning: {}\n", printable(warning));
  const std::string text = o.json ? as_json(report) : o.to.empty() ? as_text(report) : converted(report, o.to);
  fmt::print("{}", printable_lines(text));
}

}  // namespace

void add_hosts_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("hosts", "Check a job's hosts, convert their list, print the command that starts it");
  auto o = std::make_shared<HostsOptions>();
  command->add_option("--file,--hostfile", o->file,
                      "A hostfile, rank table, list, or NAME=VALUE settings; - is standard input");
  command->add_option("-H,--host", o->list, "A list, as a:8,b:8");
  command->add_option("--from", o->from, "The form that is read; by its looks unless given")
      ->check(CLI::IsMember({"host-list", "hostfile", "slurm", "master", "rank-table"}));
  command->add_option("--to", o->to, "Print this form alone")
      ->check(CLI::IsMember({"hostfile", "host-list", "rank-table", "slurm", "mpirun"}));
  command->add_flag("--json", o->json, "Print all as JSON")->excludes("--to");
  command->add_option("--slots", o->slots, "Ranks of hosts for which the source says none")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option(
          "--interface", o->interface,
          "Networks between hosts: names, addresses, networks, a list of them; by the route to the hosts unless given")
      ->envname("LOCKSTEP_INTERFACE");
  command
      ->add_option("--interface-policy", o->policy,
                   "all: each rank uses all of them; rank: local rank i prefers the i-th")
      ->envname("LOCKSTEP_INTERFACE_POLICY");
  command->add_option("--ports", o->ports, "Fix all ports of the job to this range, as 60000-60015");
  command->add_option("-p,--ssh-port", o->ssh_port, "Port of the hosts' ssh servers")->check(CLI::Range(1, 65535));
  command->add_option("--threads", o->threads, "Threads per rank; cores are shared out unless given")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--prefix", o->prefix,
                   "Bits in which the addresses of two hosts are equal if they are of one network (24; IPv6 64)")
      ->check(CLI::Range(1, 128));
  command->add_flag("--rank-settings", o->rank_settings,
                    "Print the variables of Open MPI that LOCKSTEP_INTERFACE means for this rank");
  command->add_option("program", o->program, "The program and its arguments, behind --");
  command->footer(kHostsHelp);
  command->callback([o] { show(*o); });
}

}  // namespace lockstep::tools
