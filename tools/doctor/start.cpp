#include "tools/doctor/start.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/launch/job_command.h"
#include "lockstep/launch/mpirun_words.h"
#include "tools/doctor/remote.h"

namespace lockstep::tools {
namespace {

using nlohmann::json;
using preflight::Finding;
using preflight::Level;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{60};

std::string ssh_arguments(const DoctorOptions& options) {
  const std::string port = options.ssh_port == 0 ? "" : formatted("-p {}", options.ssh_port);
  return port + (port.empty() || options.ssh_args.empty() ? "" : " ") + options.ssh_args;
}

// The last lines that say something.
std::string end_of(const std::string& errors) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < errors.size();) {
    const std::size_t end = std::min(errors.find('\n', at), errors.size());
    if (const std::string line = errors.substr(at, end - at); line.find_first_not_of(" -\t\r") != line.npos)
      lines.push_back(line);
    at = end + 1;
  }
  constexpr std::size_t kLines = 6;
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return joined(lines, " / ");
}

json last_json(Remote& mpirun) {
  json found = nullptr;
  while (const auto line = mpirun.line()) {
    if (const json value = json::parse(*line, nullptr, false); value.is_object() && value.contains("findings"))
      found = value;
  }
  return found;
}

Finding failed_start(Remote& mpirun, const std::string& line) {
  const std::string what = mpirun.ended() ? formatted("mpirun ended with status {}", mpirun.status())
                                          : formatted("mpirun has started no ranks within {} s", kLimit.count());
  return {.level = Level::Red,
          .what = formatted("{}: {}", what, end_of(mpirun.errors())),
          .mend = "look at docs/launch.md, \"What a failure says\"; by hand: " + line + " true",
          .check = "start"};
}

}  // namespace

std::vector<std::string> mpirun_words(const DoctorOptions& options, const launch::HostList& hosts) {
  launch::MpirunWords words(launch::split_words(options.mpi_args, "--mpi-args"));
  std::vector<std::string> list;
  std::int64_t ranks = 0, most = 0;
  for (const launch::Host& host : hosts.hosts) {
    const std::int64_t slots = std::max<std::int64_t>(1, host.slots);
    list.push_back(formatted("{}:{}", host.name, slots));
    ranks += slots;
    most = std::max(most, slots);
  }
  words.add({"-H", joined(list, ","), "-n", std::to_string(ranks)});
  words.add_no_binding();
  words.add({"--oversubscribe"});
  if (geteuid() == 0) words.add({"--allow-run-as-root"});
  if (const std::string ssh = ssh_arguments(options); !ssh.empty()) words.add_ssh_arguments(ssh);
  if (!options.interface.empty()) {
    words.add_network("oob_tcp", options.interface);
    words.add_network("btl_tcp", options.interface);
  }
  if (const launch::PortRange ports = parse_ports(options.ports); !ports.any())
    words.add_ports(launch::plan_ports({ports.first, ports.last}, {.ranks_per_host = most}));
  return words.with({});
}

std::vector<Finding> try_start(const DoctorOptions& options, const launch::HostList& hosts,
                               const std::string& program) {
  std::vector<std::string> words;
  try {
    words = mpirun_words(options, hosts);
  } catch (const Error& error) {  // a range of ports that is too small for the ranks of a host
    return {{.level = Level::Red,
             .what = error.what(),
             .mend = "give --ports and --mpi-args as this line expects them",
             .check = "start"}};
  }
  const std::string line = launch::shell_line(words);
  words.insert(words.end(), {program, "doctor", "--cheap", "--json"});
  if (options.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options.threads)});
  const auto begin = steady_clock::now();
  Remote mpirun(words);
  json report = nullptr;
  double seconds = 0;
  while (!mpirun.ended() && steady_clock::now() < begin + kLimit) {  // to its end: its ports are then free
    Remote::wait({&mpirun}, 50);
    if (json found = last_json(mpirun); !found.is_null()) {
      report = std::move(found);
      seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    }
  }
  if (report.is_null()) return {failed_start(mpirun, line)};
  if (mpirun.ended()) mpirun.status();
  std::vector<Finding> findings{{.what = formatted("mpirun started {} ranks on {} hosts in {:.1f} s",
                                                   report.at("ranks").get<int>(), hosts.hosts.size(), seconds),
                                 .check = "start"}};
  for (Finding& finding : preflight::findings_from_json(report.at("findings"))) {
    if (finding.level != Level::Green) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::tools
