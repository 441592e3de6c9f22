#include "tools/launcher/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/launch/mpirun_kind.h"
#include "tools/launcher/environment_options.h"
#include "tools/launcher/gathering.h"
#include "tools/launcher/head_job.h"
#include "tools/launcher/hydra_line.h"
#include "tools/launcher/job_ports.h"
#include "tools/launcher/member.h"
#include "tools/launcher/mpirun_line.h"
#include "tools/launcher/node.h"
#include "tools/launcher/outer_job.h"
#include "tools/launcher/rank.h"
#include "tools/launcher/say.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kFarewell = 2000ms;

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

MpirunLine line_of(const LaunchOptions& o) {
  const auto kind = launch::mpirun_kind("mpirun", comm::Environment::library());
  MpirunLine line{.kind = kind, .own_name = own_name(), .program = o.words};
  const bool hydra = kind == launch::MpirunKind::Hydra;
  // Open MPI's mpirun asks root to confirm; whoever starts programs by torchrun's command line is not asked there
  // either.
  if (!hydra && ::geteuid() == 0) line.extra.push_back("--allow-run-as-root");
  if (o.mpirun.tag_output) line.extra.emplace_back(hydra ? "-prepend-rank" : "--tag-output");
  for (std::string& word : launch::split_words(o.mpirun.words, "--mpi-args")) line.extra.push_back(std::move(word));
  return line;
}

std::map<std::string, std::string> master_variables(const std::string& address, int port) {
  return {{"MASTER_ADDR", address}, {"MASTER_PORT", std::to_string(port)}};
}

int say_end(const HeadJob& job, int status) {
  if (!job.reason().empty()) say(fmt::format("the job has ended with exit code {}: {}", status, job.reason()));
  return status;
}

int launch_here(const LaunchOptions& o, supervisor::Signals& signals) {
  const Join own = describe_node(o, 0, 1);
  if (!own.problem.empty()) {
    say(own.problem);
    return 127;
  }
  MpirunLine line = line_of(o);
  line.hosts = fmt::format("{}:{}", own.host, own.ranks);
  line.here = true;
  line.ranks = own.ranks;
  line.ports = plan_job_ports(o, {.ranks_per_host = own.ranks});
  check_job_ports(line.ports, own.ranks);
  auto variables = node_variables(0, {}, o.wrapper);
  variables.merge(master_variables("127.0.0.1", port_for_programs(line.ports)));
  HeadJob job({.words = mpirun_words(line, variable), .variables = variables, .stop_limit = o.stop_timeout * 1000ms},
              nullptr, signals, say);
  return say_end(job, job.run());
}

int launch_by_ssh(const LaunchOptions& o, supervisor::Signals& signals) {
  check(o.wrapper.empty(), "launch", "--wrapper is each node's own; expected it in the command beside --host");
  check(o.nodes <= 1 && o.node < 1, "launch",
        "--host and --hostfile start all hosts from this one by ssh; expected no --nnodes and --node-rank beside them");
  MpirunLine line = line_of(o);
  line.hosts = o.ssh.hosts;
  line.hostfile = o.ssh.hostfile;
  line.ranks = o.ssh.ranks;
  line.ssh_port = o.ssh.port;
  if (!o.mpirun.ports.empty()) line.ports = plan_job_ports(o, {.ranks_per_host = most_ranks_by_ssh(o.ssh)});
  check_job_ports(line.ports, 0);                   // mpirun's own; this may be no host of the job
  line.own_name = own_folder() + "/" + own_name();  // other hosts' PATH is ssh's
  line.variables = master_variables(host_name(), port_for_programs(line.ports));
  std::map<std::string, std::string> variables;
  if (line.kind == launch::MpirunKind::Hydra) variables = hydra_variables(line);
  HeadJob job({.words = mpirun_words(line, variable), .variables = variables, .stop_limit = o.stop_timeout * 1000ms},
              nullptr, signals, say);
  return say_end(job, job.run());
}

struct HeadPlace {
  io::FileDescriptor listener{};
  std::string address{};  // for programs
  bool supervised = false;
};

bool may_start_again(int status) {
  constexpr std::array kFinal{0, kExitCommandLine, kExitStopped, kExitUntrusted, 126, 127};
  return std::find(kFinal.begin(), kFinal.end(), status) == kFinal.end();
}

// Of a job whose nodes are all there. Throws Error where --ports has too few for one of them.
MpirunLine line_of_nodes(const LaunchOptions& o, const Roster& roster) {
  std::vector<std::string> hosts;
  int most = 0;
  for (int i = 0; i < roster.nodes(); ++i) {
    hosts.push_back(fmt::format("{}:{}", roster.join(i).host, roster.join(i).ranks));
    most = std::max(most, roster.join(i).ranks);
  }
  MpirunLine line = line_of(o);
  line.hosts = fmt::format("{}", fmt::join(hosts, ","));
  line.ranks = roster.ranks();
  line.agents = roster.nodes();
  line.network = roster.network();
  line.ports = plan_job_ports(o, {.ranks_per_host = most, .launch = true});
  return line;
}

Done run_as_head(const LaunchOptions& o, const std::string& address, Rendezvous& rendezvous,
                 supervisor::Signals& signals) {
  const GatheringOptions gathering{.limit = std::chrono::seconds(o.meeting.timeout),
                                   .allow_differences = o.allow_differences};
  if (auto end = gather(gathering, rendezvous, signals)) {
    say(end->reason);
    return *std::move(end);
  }
  const MpirunLine line = line_of_nodes(o, rendezvous.roster());
  check_job_ports(line.ports, rendezvous.roster().join(0).ranks);
  say(fmt::format("{} ranks on {} nodes: {}", line.ranks, o.nodes, line.hosts));
  const auto master = master_variables(address, port_for_programs(line.ports));
  auto variables = node_variables(0, {}, o.wrapper);
  variables.insert(master.begin(), master.end());
  HeadJob job({.words = mpirun_words(line, variable),
               .variables = variables,
               .node_variables = master,
               .stop_limit = o.stop_timeout * 1000ms},
              &rendezvous, signals, say);
  const int status = say_end(job, job.run());
  return {.status = status, .reason = job.reason()};
}

int launch_as_head(const LaunchOptions& o, HeadPlace place, const Secret& secret, supervisor::Signals& signals) {
  const Join own = describe_node(o, 0, o.nodes);
  Rendezvous rendezvous(Reception(std::move(place.listener), secret, say), own, {place.supervised}, say);
  Done end;
  try {
    end = run_as_head(o, place.address, rendezvous, signals);
  } catch (const PortTaken& error) {  // the other nodes are told, too
    end = {.status = 1, .reason = error.what()};
    say(end.reason);
  } catch (const Error& error) {
    end = {.status = kExitCommandLine, .reason = error.what()};
    say(end.reason);
  }
  end.again = place.supervised && may_start_again(end.status);
  rendezvous.send_all(to_message(end));
  rendezvous.flush(kFarewell);
  return end.status;
}

Secret secret_of(const LaunchOptions& o) {
  auto secret = Secret::from_environment();
  if (!o.meeting.secret_file.empty()) secret.emplace(Secret::from_file(o.meeting.secret_file));
  check(
      secret.has_value(), "launch",
      "a job of {} nodes needs a secret that they share, so that nobody else can start programs on them, and there is "
      "none; `(umask 077; openssl rand -hex 32 > launch.secret)` makes one: copy it to every node, and give "
      "--secret-file launch.secret there (or its content as LOCKSTEP_LAUNCH_SECRET in the environment)",
      o.nodes);
  return *secret;
}

int launch_as_member(const LaunchOptions& o, std::vector<std::string> addresses, int port, const Secret& secret,
                     bool outer, supervisor::Signals& signals) {
  auto variables = node_variables(o.node, o.allow_differences ? o.words : std::vector<std::string>{}, o.wrapper);
  if (!outer) variables["MASTER_ADDR"] = addresses[0];
  Join own = describe_node(o, o.node, o.nodes);
  try {
    check_job_ports(plan_job_ports(o, {.ranks_per_host = own.ranks, .launch = true}), own.ranks);
  } catch (const Error& error) {  // node 0 names it, and the job is not waited for
    if (own.problem.empty()) own.problem = error.what();
  }
  Member member({.addresses = std::move(addresses),
                 .port = port,
                 .join = own,
                 .limit = std::chrono::seconds(o.meeting.timeout),
                 .variables = variables,
                 .pass_signals = !outer},
                secret, signals, say);
  return member.run();
}

int launch_in_outer_job(LaunchOptions o, supervisor::Signals& signals) {
  io::FileDescriptor listener;
  const OuterJob outer = agree_in_outer_job([&] {  // on node 0; an error there is all nodes'
    const auto ports = plan_job_ports(o, {.ranks_per_host = ranks_of_node(o.ranks_per_node), .launch = true});
    listener = listen_tcp(ports ? ports->launch : 0);
    return port_of(listener);
  });
  leave_outer_job();
  o.nodes = outer.nodes;
  o.node = outer.node;
  const Secret secret(outer.secret, "the outer job's secret");
  if (o.node > 0) return launch_as_member(o, outer.addresses, outer.port, secret, true, signals);
  check(!outer.addresses.empty(), "launch", "node 0 has no address but loopback");
  return launch_as_head(o, {.listener = std::move(listener), .address = outer.addresses[0]}, secret, signals);
}

int launch_on_each_node(const LaunchOptions& o, supervisor::Signals& signals) {
  check(o.node >= 0 && o.node < o.nodes, "launch", "{}, expected 0 to {}, another on each node",
        o.node < 0 ? std::string("no --node-rank (or NODE_RANK)") : fmt::format("--node-rank is {}", o.node),
        o.nodes - 1);
  check(!o.meeting.address.empty(), "launch",
        "no --master-addr (or MASTER_ADDR), expected the name or address of node 0, the same on all nodes");
  const Secret secret = secret_of(o);
  const int port = meeting_port(o);
  if (o.node > 0) return launch_as_member(o, {o.meeting.address}, port, secret, false, signals);
  return launch_as_head(o,
                        {.listener = listen_tcp(port),
                         .address = o.meeting.address,
                         .supervised = variable("OMPI_LOCKSTEP_JOB").has_value()},
                        secret, signals);
}

}  // namespace

int launch(const LaunchOptions& options) {
  LaunchOptions o = options;
  check(!o.words.empty(), "launch", "no program, expected: lockstep launch [OPTIONS] PROGRAM ARGUMENTS...");
  const bool by_ssh = !o.ssh.hosts.empty() || !o.ssh.hostfile.empty(), ranks_said = !o.ranks_per_node.empty();
  read_environment(o, variable);
  supervisor::Signals signals;
  if (by_ssh) return launch_by_ssh(o, signals);
  const int outer = outer_size(variable);
  const int nodes = o.nodes > 0 ? o.nodes : std::max(outer, 1);
  if (o.ssh.ranks > 0) {  // as horovodrun takes it
    check(!ranks_said && nodes == 1, "launch",
          "-n {} is the number of ranks of all hosts, expected it with --host or --hostfile, or on one node without "
          "--nproc-per-node",
          o.ssh.ranks);
    o.ranks_per_node = std::to_string(o.ssh.ranks);
  }
  if (o.nodes == 0 && outer > 1) return launch_in_outer_job(o, signals);
  // Nodes that were told their numbers meet by those, also where an outer job started their launchers.
  if (outer > 0) leave_outer_job();
  o.nodes = nodes;
  return o.nodes == 1 ? launch_here(o, signals) : launch_on_each_node(o, signals);
}

}  // namespace lockstep::launcher
