// `lockstep doctor`: what would hinder a job on these hosts, before it is started or within mpirun.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/job_network.h"
#include "lockstep/launch/mpirun_kind.h"
#include "lockstep/launch/mpirun_words.h"
#include "lockstep/launch/read_hosts.h"
#include "lockstep/preflight/look.h"
#include "tools/commands.h"
#include "tools/doctor/options.h"
#include "tools/doctor/print.h"
#include "tools/doctor/probes.h"
#include "tools/doctor/start.h"
#include "tools/doctor/subject.h"

namespace lockstep::tools {
namespace {

using nlohmann::json;
using preflight::Finding;

constexpr const char* kDoctorHelp = R"(Examples:
  lockstep doctor -H node1:8,node2:8                     through ssh, then by an mpirun of its own
  lockstep doctor -H a:8,b:8 -p 12345 --ports 60000-60015 --data-dir DATA --program ./train_resnet
  mpirun -n 16 --hostfile hosts lockstep doctor          within a job, with that job's settings
  lockstep doctor                                        this machine alone
Exit code: 0 all is green, 1 something is yellow (slow, or a risk), 2 something is red (the job would fail, hang or
compute something else).)";

std::vector<const preflight::Check*> checks_for(bool cheap) {
  if (cheap) return preflight::start_checks(true);
  const auto all = preflight::all_checks();
  return {all.begin(), all.end()};
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

// A process that a doctor on another host started: its settings come on stdin, what it says goes to stdout.
int answer_doctor() {
  fmt::print("{{\"hello\": 1}}\n");
  std::fflush(stdout);
  preflight::LineExchange greeting(STDIN_FILENO, STDOUT_FILENO, 0, 1);
  const json settings = json::parse(greeting.read());
  preflight::Subject subject = subject_here(settings, settings.at("local_ranks"));
  subject.rank = subject.node = settings.at("rank");
  subject.network.hosts = settings.at("hosts").get<std::vector<std::string>>();
  preflight::LineExchange exchange(STDIN_FILENO, STDOUT_FILENO, subject.rank, settings.at("size"));
  const auto checks = checks_for(settings.at("cheap"));
  const std::vector<Finding> findings = preflight::look(checks, subject, exchange);
  fmt::print("{}\n",
             json{{"findings", preflight::to_json(findings)}}.dump(-1, ' ', true, json::error_handler_t::replace));
  return 0;
}

int report(const std::vector<Finding>& findings, int ranks, const DoctorOptions& o) {
  print_findings(findings, ranks, o.json);
  return static_cast<int>(preflight::worst(findings));
}

// All ranks end with status 0 but rank 0, which tells the result.
int look_inside(DoctorOptions& o) {
  comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  preflight::Subject subject = comm::collectively(world, [&] {
    json settings = subject_settings(o);
    settings["ports"] = "";                                  // this job's own processes listen there
    if (world.local_rank() != 0) settings["data_dir"] = "";  // one rank of a node reads the data set
    return subject_here(settings, world.local_size());
  });
  subject.same.data = world.group("node").broadcast_string(subject.same.data);
  const bool names_data = !o.data_dir.empty();  // mpirun takes no variable to other hosts unless it is told to
  if (world.allreduce(std::int32_t{names_data}, comm::ReduceOp::Max) != 0 && !names_data)
    subject.same.data = "no folder is named on this rank, expected --data-dir, or mpirun -x LOCKSTEP_DATA_DIR";
  subject.rank = world.rank();
  subject.node = world.node_rank();
  subject.local_rank = world.local_rank();
  for (int rank = 0; rank < world.size(); ++rank) {
    if (world.topology().local_rank(rank) == 0) subject.network.hosts.push_back(world.topology().host(rank));
  }
  preflight::CommunicatorExchange exchange(world);
  const std::vector<Finding> findings = preflight::look(checks_for(o.cheap), subject, exchange);
  world.barrier();
  return world.is_root() ? report(findings, world.size(), o) : 0;
}

int look_at_this_machine(const DoctorOptions& o) {
  preflight::Subject subject = subject_here(subject_settings(o), 1);
  subject.network.hosts = {subject.host};
  preflight::AloneExchange exchange;
  return report(preflight::look(checks_for(o.cheap), subject, exchange), 1, o);
}

launch::HostList hosts_of(const DoctorOptions& o) {
  check(o.hosts.empty() || o.hostfile.empty(), "doctor", "-H and --hostfile are both given, expected one of them");
  if (!o.hosts.empty()) return launch::parse_host_list(o.hosts);
  const std::string text = launch::read_small_file(o.hostfile);
  launch::HostsRead read = launch::read_hosts_text(text, o.hostfile, launch::form_of_text(text));
  check(!read.master || read.master->nodes == 1, "doctor",
        "{} names the first of {} hosts alone, expected a list of all of them", o.hostfile,
        read.master ? read.master->nodes : 0);
  return std::move(read.list);
}

// The doctor's own mpirun, on the network that the setting means here: Open MPI takes no addresses.
std::vector<Finding> start_findings(const DoctorOptions& o, const launch::HostList& hosts) {
  DoctorOptions job = o;
  try {
    if (!o.interface.empty())
      job.interface = launch::find_network(hosts, o.interface, launch::NetworkFacts::of_this_machine()).include;
  } catch (const Error&) {  // a network of the hosts in which this machine is not: mpirun gets the words as they are
  }
  try {
    const auto kind = launch::mpirun_kind("mpirun", comm::Environment::library());
    return try_start(job, {.hosts = hosts, .program = own_path(), .kind = kind});
  } catch (const Error& error) {
    return {{.level = preflight::Level::Red,
             .what = error.what(),
             .mend = "have mpirun of the job's MPI in PATH: apt-get install openmpi-bin, or mpich",
             .check = "start"}};
  }
}

bool is_told(const std::vector<Finding>& findings, const Finding& finding) {
  return std::ranges::any_of(findings, [&](const Finding& told) {
    return told.check == finding.check && told.level != preflight::Level::Green;
  });
}

int look_at_hosts(const DoctorOptions& o) {
  const launch::HostList hosts = hosts_of(o);
  check(!hosts.hosts.empty(), "doctor", "no hosts are named, expected one or more");
  ProbeOptions probe{.port = o.ssh_port, .program = own_path()};
  probe.ssh = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  if (o.ssh_port != 0) probe.ssh.insert(probe.ssh.end(), {"-p", std::to_string(o.ssh_port)});
  for (const std::string& word : launch::split_words(o.ssh_args, "--ssh-args")) probe.ssh.push_back(word);
  std::vector<ProbedHost> probed;
  int ranks = 0;
  for (const launch::Host& host : hosts.hosts) {
    json settings = subject_settings(o);
    settings["local_ranks"] = std::max<std::int64_t>(1, host.slots);
    ranks += static_cast<int>(std::max<std::int64_t>(1, host.slots));
    probed.push_back({host.login(), std::move(settings)});
  }
  ProbeReport looked = probe_hosts(probe, probed);
  const bool sound = looked.all_answered && preflight::worst(looked.findings) != preflight::Level::Red;
  if (sound && !o.no_start) {  // else it would hang or fail for the reasons that are told
    for (Finding& finding : start_findings(o, hosts)) {
      if (!is_told(looked.findings, finding)) looked.findings.push_back(std::move(finding));
    }
  }
  return report(looked.findings, ranks, o);
}

int look(DoctorOptions& o) {
  if (o.probe) return answer_doctor();
  read_environment(o);
  parse_ports(o.ports);  // throws before anything is started
  if (!o.hosts.empty() || !o.hostfile.empty()) return look_at_hosts(o);
  return comm::launched_rank() >= 0 ? look_inside(o) : look_at_this_machine(o);
}

}  // namespace

void add_doctor_command(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("doctor", "Look at hosts, network, memory and libraries before a job is started");
  command->footer(kDoctorHelp);
  auto o = std::make_shared<DoctorOptions>();
  command->add_option("-H,--host", o->hosts, "The hosts and their ranks, as in a:8,b:8");
  command->add_option("--hostfile", o->hostfile,
                      "A file of them: mpirun's hostfile, a rank table, or another form that `lockstep hosts` reads");
  command->add_option("-p,--ssh-port", o->ssh_port, "Port of the hosts' ssh servers")->check(CLI::Range(1, 65535));
  command->add_option("--ssh-args", o->ssh_args, "Further words for ssh, as plm_rsh_args");
  command->add_option("--mpi-args", o->mpi_args, "Further words for the doctor's own mpirun");
  command->add_option("--interface", o->interface,
                      "Interfaces, addresses or networks that MPI is to use; else LOCKSTEP_INTERFACE");
  command->add_option("--ports", o->ports, "Ports that MPI is to use, as 60000-60015");
  command->add_option("--threads", o->threads, "Threads of each rank; 0: as many as there are cores")
      ->check(CLI::Range(0, 4096));
  command->add_option("--program", o->program, "A program that has to be the same on all hosts");
  command->add_option("--data-dir", o->data_dir,
                      "A data set that has to be the same on all hosts; else LOCKSTEP_DATA_DIR");
  command->add_option("--output", o->output, "The job's folder, which needs room for checkpoints");
  command->add_flag("--json", o->json, "Print JSON: level, ranks, findings (check, level, what, where, mend)");
  command->add_flag("--cheap", o->cheap,
                    "Only what the start of every job looks at: nothing that connects or measures");
  command->add_flag("--no-start", o->no_start, "Do not start mpirun");
  command->add_flag("--probe", o->probe)->group("");
  command->callback([o, &status] { status = look(*o); });
}

}  // namespace lockstep::tools
