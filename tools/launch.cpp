#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "tools/commands.h"
#include "tools/launcher/agents.h"
#include "tools/launcher/job_ports.h"
#include "tools/launcher/launch.h"
#include "tools/launcher/rank.h"

namespace lockstep::tools {
namespace {

constexpr const char* kHelp = R"(Examples:
  lockstep launch --nproc-per-node 8 ./train_resnet ...                 eight ranks on this machine
  lockstep launch --nnodes 2 --node-rank I --nproc-per-node 8 --master-addr A --secret-file F ./train_resnet ...
                                                                        the same on each node, with I from 0: no ssh
  lockstep launch -H a:8,b:8 -p 12345 ./train_resnet ...                on hosts that ssh reaches, at port 12345
  mpirun -H a:1,b:1 --bind-to none --map-by slot lockstep launch --nproc-per-node 8 ./train_resnet ...
                                                                        one launcher per node, one job of 16 ranks

Programs find RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and a free MASTER_PORT in their
environment, and are started in the folder of their node's launcher. Several nodes share a secret (--secret-file, or
LOCKSTEP_LAUNCH_SECRET): nothing runs for a peer that does not know it. INT, TERM and HUP on any node ask all ranks to
end (SIGTERM), a second one ends them; USR1 and USR2 are handed on. The exit code is the job's, on every node.)";

int run(const launcher::LaunchOptions& options) {
  try {
    check(options.words.empty() || !options.words[0].starts_with('-'), "launch",
          "'{}' is not an option of lockstep launch, and not a program", options.words.empty() ? "" : options.words[0]);
    return launcher::launch(options);
  } catch (const launcher::PortTaken& error) {  // another start may find it free
    fmt::print(stderr, "lockstep: {}\n", printable(error.what()));
    return 1;
  } catch (const Error& error) {
    fmt::print(stderr, "lockstep: {}\n", printable(error.what()));
    return kExitCommandLine;
  }
}

void be_alone(launcher::LaunchOptions& o) {
  if (o.nodes > 1 || o.node > 0)
    throw CLI::ValidationError("--standalone", "this node alone, expected no --nnodes and --node-rank beside it");
  o.nodes = 1;
  o.node = 0;
}

// Options of torchrun that mean something else here: each says what.
void add_counterpart(CLI::App& command, const std::string& names, const std::string& counterpart) {
  // A hidden option has no name in the messages of its own checks.
  const std::string name = names.substr(0, names.find(','));
  command.add_option(names)->group("")->check([=](const std::string&) -> std::string {
    throw CLI::ValidationError(name, "no option of lockstep launch; " + counterpart);
  });
}

void add_torchruns_options(CLI::App& command) {
  add_counterpart(command, "--max-restarts,--max_restarts",
                  "expected lockstep run --max-restarts N -- lockstep launch ...");
  add_counterpart(command, "--rdzv-backend,--rdzv_backend",
                  "there is one way to meet; expected --master-addr (and --master-port) of node 0 alone");
  add_counterpart(command, "--rdzv-endpoint,--rdzv_endpoint",
                  "expected --master-addr HOST --master-port PORT, and --node-rank");
  add_counterpart(command, "--rdzv-id,--rdzv_id",
                  "expected another --master-port for each job, and no name of the job");
}

std::string check_not_elastic(const std::string& text) {
  if (text.find(':') == text.npos) return "";
  return "'" + text +
         "' is elastic, which is not here; expected one number: a job keeps its nodes, and the next start may have "
         "others";
}

// For mpirun alone: not shown in the help.
void add_helper(CLI::App& app, const std::string& name, std::function<int(std::vector<std::string>)> work,
                int& status) {
  CLI::App* command = app.add_subcommand(name, "")->group("")->prefix_command();
  command->set_help_flag();
  command->callback([work = std::move(work), command, &status] { status = work(command->remaining()); });
}

}  // namespace

void add_launch_command(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("launch", "Start a program on the cores of one machine or several, as one MPI job");
  command->footer(kHelp);
  command->prefix_command();
  auto o = std::make_shared<launcher::LaunchOptions>();
  auto standalone = std::make_shared<bool>(false);
  o->ranks_per_node.clear();  // not said
  o->version = LOCKSTEP_VERSION;
  command->add_option("--nproc-per-node,--nproc_per_node,--ranks-per-node", o->ranks_per_node,
                      "Ranks on this node, 1 unless given (or NPROC_PER_NODE); auto: one per core");
  command->add_option("--nnodes", o->nodes, "Nodes, on each of which this command is called (or NNODES)")
      ->check(check_not_elastic)
      ->check(CLI::Range(1, 100000));
  command->add_option("--node-rank,--node_rank", o->node, "The number of this node, from 0 (or NODE_RANK)")
      ->check(CLI::Range(0, 99999));
  command->add_option("--master-addr,--master_addr", o->meeting.address, "Name or address of node 0 (or MASTER_ADDR)");
  command
      ->add_option("--master-port,--master_port", o->meeting.port,
                   "Port at which node 0 waits for the others; unless given (or MASTER_PORT) 29500, or the third of "
                   "--ports")
      ->check(CLI::Range(1, 65535));
  command->add_option("--secret-file", o->meeting.secret_file, "File of mode 0600 with the nodes' secret");
  command->add_option("--timeout", o->meeting.timeout, "Seconds in which all nodes have to join")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--stop-timeout", o->stop_timeout, "Seconds for ranks that were asked to end")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("-H,--host,--hosts", o->ssh.hosts, "Hosts with their ranks, a:8,b:8, started by ssh from here");
  command->add_option("--hostfile", o->ssh.hostfile, "The same as a hostfile of mpirun's");
  command
      ->add_option(
          "-n,--np", o->ssh.ranks,
          "Ranks of all hosts (also -np), of this one without hosts; unless given as many as the hosts have slots")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--standalone", *standalone, "This node alone, whatever NNODES and NODE_RANK are")
      ->excludes("--host")
      ->excludes("--hostfile");
  command->add_option("-p,--ssh-port", o->ssh.port, "The port of the hosts' ssh servers")->check(CLI::Range(1, 65535));
  command->add_option("--ports", o->mpirun.ports,
                      "Fix all ports of the job on each node to this range, as 60000-60015; the same on all nodes");
  command->add_option("--mpi-args", o->mpirun.words, "More words for mpirun, as one argument");
  command->add_option("--wrapper", o->wrapper,
                      "A program of this node, as scripts/train.sh, that is given the program's words and becomes it");
  command->add_flag("--tag-output", o->mpirun.tag_output, "The rank in front of each line of output");
  command->add_flag("--allow-differences", o->allow_differences,
                    "Nodes may differ in program and arguments: each runs its own");
  command->callback([=, &status] {
    o->words = command->remaining();
    if (*standalone) be_alone(*o);
    status = run(*o);
  });
  add_torchruns_options(*command);
  add_helper(app, "launch-agent", launcher::run_agent, status);
  add_helper(app, "launch-rank", launcher::become_rank, status);
}

}  // namespace lockstep::tools
