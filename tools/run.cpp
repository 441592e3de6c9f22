#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "lockstep/launch/mpirun_kind.h"
#include "tools/commands.h"
#include "tools/supervisor/supervisor.h"

namespace lockstep::tools {
namespace {

constexpr const char* kRunHelp = R"(Example:
  lockstep run --rejoin 10 -- mpirun -n 16 --hostfile hosts --bind-to none scripts/train.sh ./train_resnet \
    --output /shared/run7 --global-batch 512 --shards 16 --checkpoint-every-steps 200 ...

Every start has --resume auto: a new run needs a new --output, which has to be visible here and has one supervisor at
a time. --output, --global-batch, --shards and --resume may stand in the program's --config FILE. Hosts of mpirun's
--hostfile or --host are asked through ssh first; those that do not answer are left out, with fewer ranks, if the
program has --global-batch (with --shards the result keeps its bits), and taken back later. What is done and why
stands on stderr and in OUTPUT/logs/supervisor.log. TERM, INT, HUP and USR2 stop the job in good order, a second one
at once; USR1 asks it for a checkpoint. The exit code is the job's last: 0 done, 75 stopped in good order, 2 wrong
command line and 77 untrusted results (never started again), others after --max-restarts.)";

struct RunOptions {
  supervisor::SupervisorOptions supervisor;
  std::vector<std::string> command;
  double backoff = 1, rejoin = 0;
  std::int64_t start_timeout = 300, probe_timeout = 5;
};

std::string folder(const supervisor::JobCommand& command, const std::string& own) {
  const auto named = command.program_option("output");
  std::string said = named ? command.path_of_program(*named) : own;
  check(!said.empty(), "run",
        "the command has no --output DIR{}; expected one there, in its --config file, or lockstep run --output DIR, to "
        "know its checkpoints",
        command.config_problem().empty() ? "" : ", and its " + command.config_problem());
  check(own.empty() || std::filesystem::weakly_canonical(own) == std::filesystem::weakly_canonical(said), "run",
        "--output is '{}' here and '{}' in the command or its --config file, expected the same", own, said);
  return said;
}

// Whether the command is `lockstep launch` on a node other than 0, as its options or NODE_RANK say.
bool is_on_other_node(const std::vector<std::string>& words) {
  if (words.size() < 2 || std::filesystem::path(words[0]).filename() != "lockstep" || words[1] != "launch")
    return false;
  const char* variable = std::getenv("NODE_RANK");
  std::string node = variable == nullptr ? "" : variable;
  for (std::size_t at = 2; at + 1 < words.size(); ++at) {
    for (const std::string name : {"--node-rank", "--node_rank"}) {
      if (words[at] == name) node = words[at + 1];
      if (words[at].starts_with(name + "=")) node = words[at].substr(name.size() + 1);
    }
  }
  return !node.empty() && node.find_first_not_of('0') != node.npos;
}

// There the launcher waits for node 0, whose supervisor starts the job again: it takes this process's place.
int become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  fmt::print(stderr, "lockstep: {}: {}\n", printable(words[0]), std::strerror(errno));
  return 127;
}

int supervise(RunOptions& o) {
  if (is_on_other_node(o.command)) return become(o.command);
  const launch::MpirunKind kind = launch::mpirun_kind(o.command[0], comm::Environment::library());
  std::optional<supervisor::JobCommand> command;
  try {
    command.emplace(o.command, kind);
    if (!o.supervisor.output.empty() && !command->program_option("output")) {  // one folder, for both
      o.command.insert(o.command.end(), {"--output", o.supervisor.output});
      command.emplace(o.command, kind);
    }
    o.supervisor.output = folder(*command, o.supervisor.output);
    check(command->ranks().value_or(o.supervisor.min_ranks) >= o.supervisor.min_ranks, "run",
          "--min-ranks is {} and the command asks for {} ranks, expected at most as many", o.supervisor.min_ranks,
          command->ranks().value_or(0));
  } catch (const Error& error) {
    fmt::print(stderr, "lockstep: {}\n", printable(error.what()));
    return kExitCommandLine;
  }
  using std::chrono::milliseconds;
  o.supervisor.restart.backoff = milliseconds(static_cast<std::int64_t>(1000 * o.backoff));
  o.supervisor.rejoin = milliseconds(static_cast<std::int64_t>(60'000 * o.rejoin));
  o.supervisor.start_limit = std::chrono::seconds(o.start_timeout);
  o.supervisor.probe_limit = std::chrono::seconds(o.probe_timeout);
  return supervisor::Supervisor(*std::move(command), o.supervisor).run();
}

// CLI::Range takes what is no number.
std::string finite(const std::string& text) {
  return text.find_first_of("nN") == std::string::npos ? "" : fmt::format("is {}, expected a number", text);
}

}  // namespace

void add_run_command(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("run", "Start a training job, and start it again from its newest checkpoint whatever ends it");
  command->footer(kRunHelp);
  auto o = std::make_shared<RunOptions>();
  command->add_option("command", o->command, "mpirun, srun or a program, after --, with its arguments")->required();
  command->add_option("--output", o->supervisor.output,
                      "The job's folder, if its command does not say --output DIR; the program is given it");
  command
      ->add_option("--max-restarts", o->supervisor.restart.max_restarts,
                   "Failures in a row, without a newer checkpoint, after which it gives up")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--backoff", o->backoff,
                   "Seconds before the first restart; twice as long each time without a newer checkpoint, at most 300")
      ->check(finite)
      ->check(CLI::Range(0.0, 300.0))
      ->capture_default_str();
  command->add_flag("--restart-on-stop", o->supervisor.restart.restart_on_stop,
                    "Restart also after a stop in good order (75) that was not asked for here, as a time limit");
  command
      ->add_option("--min-ranks", o->supervisor.min_ranks,
                   "Rather wait for hosts, as long as it takes, than train with fewer ranks")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  command
      ->add_option("--rejoin", o->rejoin,
                   "Minutes between looks for lost hosts while the job runs; when one is back, the job is stopped in "
                   "good order and started with it. 0: lost hosts are looked for before starts only")
      ->check(finite)
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--start-timeout", o->start_timeout,
                   "Seconds in which the job has to write some file in its folder (a log, a checkpoint), or to print "
                   "something (on stdout where that is no terminal), else the start is ended; 0: any")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--probe-timeout", o->probe_timeout, "Seconds in which a host has to answer")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->callback([o, &status] { status = supervise(*o); });
}

}  // namespace lockstep::tools
