#include "tools/launcher/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/stream_writer.h"
#include "lockstep/host/threads.h"
#include "tools/launcher/head_job.h"
#include "tools/launcher/member.h"
#include "tools/launcher/mpirun_line.h"
#include "tools/launcher/outer_job.h"
#include "tools/launcher/rank.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kPoll = 200ms, kFarewell = 2000ms;
constexpr auto kWord = 15s;  // between two lines about missing nodes

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

void say(const std::string& text) {
  write_patiently(STDERR_FILENO, fmt::format("lockstep launch: {}\n", printable_lines(text)));
}

int ranks_here(const std::string& text) {
  if (text == "auto" || text == "cpu") {
    const host::Cores cores = host::available_cores();
    return cores.quota > 0 ? std::clamp(static_cast<int>(cores.quota), 1, cores.physical) : cores.physical;
  }
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  check(error == std::errc{} && end == text.data() + text.size() && ranks > 0, "launch",
        "--nproc-per-node is '{}', expected a number of ranks, or auto", text);
  return ranks;
}

// As Open MPI names this host: without its domain.
std::string host_name() {
  char name[256] = {};
  check(::gethostname(name, sizeof name - 1) == 0, "launch", "this host's name: {}", std::strerror(errno));
  const std::string text(name);
  return text.substr(0, text.find('.'));
}

std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != name.npos) return name;
  const std::string path = variable("PATH").value_or("");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const auto found = std::filesystem::path(path.substr(at, end - at)) / name;
    if (::access(found.c_str(), X_OK) == 0) return found;
    at = end + 1;
  }
  return {};
}

Join describe_node(const LaunchOptions& o, int node, int nodes) {
  Join join{.nodes = nodes,
            .node = node,
            .ranks = ranks_here(o.ranks_per_node),
            .host = host_name(),
            .version = o.version,
            .mpi = comm::Environment::library(),
            .words = o.words};
  const std::filesystem::path program = find_program(o.words[0]);
  const std::string folder = std::filesystem::current_path().string();
  if (program.empty()) {
    join.problem = fmt::format("no program '{0}' in PATH; ./{0} is one in the working directory", o.words[0]);
  } else if (std::error_code error; !std::filesystem::is_regular_file(program, error)) {
    join.problem = fmt::format("no program '{}' (working directory {})", program.string(), folder);
  } else if (::access(program.c_str(), X_OK) != 0) {
    join.problem = fmt::format("'{}' is not executable", program.string());
  } else if (nodes > 1) {
    join.program = file_digest(program);
  }
  return join;
}

// Open MPI's mpirun asks root to confirm; whoever starts programs by torchrun's command line is not asked there either.
MpirunLine line_of(const LaunchOptions& o) {
  return {.root = ::geteuid() == 0,
          .tag_output = o.tag_output,
          .own_name = own_name(),
          .extra = split_words(o.mpi_args),
          .program = o.words};
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
  line.ranks = own.ranks;
  auto variables = node_variables(0, {}, o.wrapper);
  variables.merge(master_variables("127.0.0.1", free_port()));
  HeadJob job({.words = mpirun_words(line, variable), .variables = variables, .stop_limit = o.stop_timeout * 1000ms},
              nullptr, signals, say);
  return say_end(job, job.run());
}

int launch_by_ssh(const LaunchOptions& o, supervisor::Signals& signals) {
  check(o.wrapper.empty(), "launch", "--wrapper is each node's own; expected it in the command beside --host");
  check(o.nodes <= 1 && o.node < 1, "launch",
        "--host and --hostfile start all hosts from this one by ssh; expected no --nnodes and --node-rank beside them");
  MpirunLine line = line_of(o);
  line.hosts = o.hosts;
  line.hostfile = o.hostfile;
  line.ranks = o.ranks;
  line.ssh_port = o.ssh_port;
  line.own_name = own_folder() + "/" + own_name();  // other hosts' PATH is ssh's
  line.variables = master_variables(host_name(), free_port());
  HeadJob job({.words = mpirun_words(line, variable), .stop_limit = o.stop_timeout * 1000ms}, nullptr, signals, say);
  return say_end(job, job.run());
}

// Until all nodes are there and fit together; otherwise how the launch ends.
std::optional<Done> gather(const LaunchOptions& o, Rendezvous& rendezvous, supervisor::Signals& signals) {
  using Clock = std::chrono::steady_clock;
  const Roster& roster = rendezvous.roster();
  const auto began = Clock::now(), until = began + std::chrono::seconds(o.timeout);
  auto next_word = began + kWord;
  while (!roster.complete()) {
    std::vector<pollfd> files{{signals.descriptor(), POLLIN, 0}};
    rendezvous.add_files(files);
    wait_for(files, kPoll);
    for (const auto& news : rendezvous.look()) {
      if (news.message && news.message->kind == Kind::Signal)
        return Done{128 + read_number(*news.message),
                    fmt::format("signal {} came to {}", read_number(*news.message), roster.name_of(news.node))};
    }
    while (const auto number = signals.next()) {
      if (*number != SIGUSR1) return Done{128 + *number, fmt::format("signal {} came to node 0", *number)};
    }
    if (Clock::now() > until)
      return Done{1, fmt::format("{} of {} did not join within {} s; there: {}", roster.missing(), o.nodes, o.timeout,
                                 roster.present())};
    if (Clock::now() > next_word) {
      say(fmt::format("waiting for {} of {} ({} s of {} s)", roster.missing(), o.nodes,
                      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began).count(), o.timeout));
      next_word = Clock::now() + kWord;
    }
  }
  const auto problems = roster.problems(o.allow_differences);
  if (problems.empty()) return std::nullopt;
  return Done{kExitCommandLine,
              fmt::format("the nodes do not start the same job:\n  {}\nexpected the same command and programs on all; "
                          "--allow-differences has each node run its own",
                          fmt::join(problems, "\n  "))};
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

int launch_as_head(const LaunchOptions& o, HeadPlace place, const Secret& secret, supervisor::Signals& signals) {
  const Join own = describe_node(o, 0, o.nodes);
  Rendezvous rendezvous(Reception(std::move(place.listener), secret, say), own, {place.supervised}, say);
  std::optional<Done> end = gather(o, rendezvous, signals);
  if (end) {
    say(end->reason);
  } else {
    const Roster& roster = rendezvous.roster();
    std::vector<std::string> hosts;
    for (int i = 0; i < o.nodes; ++i) hosts.push_back(fmt::format("{}:{}", roster.join(i).host, roster.join(i).ranks));
    MpirunLine line = line_of(o);
    line.hosts = fmt::format("{}", fmt::join(hosts, ","));
    line.ranks = roster.ranks();
    line.through_agents = true;
    line.nodes = o.nodes;
    line.network = roster.network();
    say(fmt::format("{} ranks on {} nodes: {}", line.ranks, o.nodes, line.hosts));
    const auto master = master_variables(place.address, free_port());
    auto variables = node_variables(0, {}, o.wrapper);
    variables.insert(master.begin(), master.end());
    HeadJob job({.words = mpirun_words(line, variable),
                 .variables = variables,
                 .node_variables = master,
                 .stop_limit = o.stop_timeout * 1000ms},
                &rendezvous, signals, say);
    const int status = job.run();
    end = Done{say_end(job, status), job.reason()};
  }
  end->again = place.supervised && may_start_again(end->status);
  rendezvous.send_all(to_message(*end));
  rendezvous.flush(kFarewell);
  return end->status;
}

Secret secret_of(const LaunchOptions& o) {
  auto secret = Secret::from_environment();
  if (!o.secret_file.empty()) secret.emplace(Secret::from_file(o.secret_file));
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
  Member member({.addresses = std::move(addresses),
                 .port = port,
                 .join = describe_node(o, o.node, o.nodes),
                 .limit = std::chrono::seconds(o.timeout),
                 .variables = variables,
                 .pass_signals = !outer},
                secret, signals, say);
  return member.run();
}

int launch_in_outer_job(LaunchOptions o, supervisor::Signals& signals) {
  io::FileDescriptor listener;
  const OuterJob outer = agree_in_outer_job([&] {
    listener = listen_tcp(0);
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

}  // namespace

int launch(const LaunchOptions& options) {
  LaunchOptions o = options;
  check(!o.words.empty(), "launch", "no program, expected: lockstep launch [OPTIONS] PROGRAM ARGUMENTS...");
  if (!o.hosts.empty() || !o.hostfile.empty()) {
    supervisor::Signals signals;
    return launch_by_ssh(o, signals);
  }
  const int outer = o.nodes == 0 ? outer_size(variable) : 0;
  if (outer > 1) {
    supervisor::Signals signals;
    return launch_in_outer_job(o, signals);
  }
  if (outer == 1) leave_outer_job();
  o.nodes = std::max(o.nodes, 1);
  if (o.nodes == 1) {
    supervisor::Signals signals;
    return launch_here(o, signals);
  }
  check(o.node >= 0 && o.node < o.nodes, "launch", "{}, expected 0 to {}, another on each node",
        o.node < 0 ? std::string("no --node-rank (or NODE_RANK)") : fmt::format("--node-rank is {}", o.node),
        o.nodes - 1);
  check(!o.master_address.empty(), "launch",
        "no --master-addr (or MASTER_ADDR), expected the name or address of node 0, the same on all nodes");
  const Secret secret = secret_of(o);
  supervisor::Signals signals;
  if (o.node > 0) return launch_as_member(o, {o.master_address}, o.master_port, secret, false, signals);
  return launch_as_head(o,
                        {.listener = listen_tcp(o.master_port),
                         .address = o.master_address,
                         .supervised = variable("OMPI_LOCKSTEP_JOB").has_value()},
                        secret, signals);
}

}  // namespace lockstep::launcher
