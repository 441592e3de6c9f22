#include "tools/doctor/start.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/job_command.h"
#include "lockstep/launch/mpirun_words.h"
#include "tools/doctor/remote.h"
#include "tools/launcher/hydra_line.h"

namespace lockstep::tools {
namespace {

using nlohmann::json;
using preflight::Finding;
using preflight::Level;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{60};

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

Finding failed_start(Remote& mpirun, const std::string& by_hand) {
  const std::string what = mpirun.ended() ? formatted("mpirun ended with status {}", mpirun.status())
                                          : formatted("mpirun has started no ranks within {} s", kLimit.count());
  return {.level = Level::Red,
          .what = formatted("{}: {}", what, end_of(mpirun.errors())),
          .mend = "look at docs/launch.md, \"What a failure says\"; by hand: " + by_hand,
          .check = "start"};
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// A file of this object's lifetime: Open MPI takes hosts with users in a file alone.
class HostsFile {
 public:
  explicit HostsFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / "lockstep-doctor-XXXXXX").string()) {
    const io::FileDescriptor file(mkostemp(path_.data(), O_CLOEXEC));
    check_call(file.open(), "doctor", "{} cannot be made, expected a TMPDIR that can be written to", path_);
    const ssize_t written = write(file.get(), text.data(), text.size());
    check_call(written == static_cast<ssize_t>(text.size()), "doctor", "{} cannot be written", path_);
  }
  ~HostsFile() { unlink(path_.c_str()); }
  HostsFile(const HostsFile&) = delete;
  HostsFile& operator=(const HostsFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One rank on a host whose ranks were not said.
launch::HostList with_slots(launch::HostList hosts) {
  for (launch::Host& host : hosts.hosts) host.slots = std::max<std::int64_t>(1, host.slots);
  return hosts;
}

std::optional<launch::PortPlan> ports_of(const DoctorOptions& options, const launch::HostList& hosts) {
  const launch::PortRange range = parse_ports(options.ports);
  if (range.any()) return std::nullopt;
  const auto most = std::ranges::max_element(hosts.hosts, {}, &launch::Host::slots);
  return launch::plan_ports(range, {.ranks_per_host = most->slots});
}

std::vector<std::string> words_of_hydra(const DoctorOptions& options, const launch::HostList& hosts,
                                        std::vector<std::string> program, const std::string& own_path) {
  const launcher::MpirunLine line{.kind = launch::MpirunKind::Hydra,
                                  .hosts = launch::to_host_list(hosts),
                                  .ports = ports_of(options, hosts),
                                  .own_name = own_path,
                                  .extra = launch::split_words(options.mpi_args, "--mpi-args"),
                                  .program = std::move(program)};
  std::vector<std::string> words = launcher::hydra_words(line);
  const std::string ssh = launch::ssh_arguments({.ssh_port = options.ssh_port, .ssh_arguments = options.ssh_args});
  if (ssh.empty()) return words;
  const std::string before = variable("HYDRA_LAUNCHER_EXTRA_ARGS").value_or("");
  words.insert(words.begin(),
               {"env", formatted("HYDRA_LAUNCHER_EXTRA_ARGS={}{}{}", before, before.empty() ? "" : " ", ssh)});
  return words;
}

// `hostfile`: the file with the hosts; empty: the command names them.
std::vector<std::string> words_of_open_mpi(const DoctorOptions& options, const launch::HostList& hosts,
                                           std::vector<std::string> program, const std::string& hostfile) {
  launch::JobCommand command{.hostfile = hostfile,
                             .network = options.interface,
                             .ssh_port = options.ssh_port,
                             .ssh_arguments = options.ssh_args,
                             .ports = ports_of(options, hosts),
                             .root = geteuid() == 0,
                             .own = launch::split_words(options.mpi_args, "--mpi-args"),
                             .variable = variable,
                             .program = std::move(program)};
  command.own.insert(command.own.begin(), "--oversubscribe");
  return launch::mpirun_words(hosts, command);
}

// The findings of the ranks, once they have told them; after mpirun's end, so that its ports are free again.
struct Report {
  json said = nullptr;
  double seconds = 0;  // until they were there
};
Report wait_for_report(Remote& mpirun) {
  Report report;
  const auto begin = steady_clock::now();
  while (!mpirun.ended() && steady_clock::now() < begin + kLimit) {
    Remote::wait({&mpirun}, 50);
    if (json found = last_json(mpirun); !found.is_null())
      report = {std::move(found), std::chrono::duration<double>(steady_clock::now() - begin).count()};
  }
  if (!report.said.is_null() && mpirun.ended()) mpirun.status();
  return report;
}

}  // namespace

std::vector<Finding> try_start(const DoctorOptions& options, const StartSubject& subject) {
  const launch::HostList hosts = with_slots(subject.hosts);
  std::vector<std::string> program{subject.program, "doctor", "--cheap", "--json"};
  if (options.threads > 0) program.insert(program.end(), {"--threads", std::to_string(options.threads)});
  std::optional<HostsFile> file;
  if (std::ranges::any_of(hosts.hosts, [](const launch::Host& host) { return !host.user.empty(); }))
    file.emplace(launch::to_hostfile(hosts));
  std::vector<std::string> words, by_hand;
  try {
    if (subject.kind == launch::MpirunKind::Hydra) {
      words = words_of_hydra(options, hosts, program, subject.program);
      by_hand = words_of_hydra(options, hosts, {"true"}, subject.program);
    } else {
      words = words_of_open_mpi(options, hosts, program, file ? file->path() : "");
      const std::string of_user = options.hostfile.empty() ? "HOSTFILE" : options.hostfile;  // this one's goes away
      by_hand = words_of_open_mpi(options, hosts, {"true"}, file ? of_user : "");
    }
  } catch (const Error& error) {  // a range of ports that is too small for a host's ranks, hosts that mpirun refuses
    return {{.level = Level::Red,
             .what = error.what(),
             .mend = "give the hosts, --ports and --mpi-args as this line expects them",
             .check = "start"}};
  }
  Remote mpirun(words);
  const Report report = wait_for_report(mpirun);
  if (report.said.is_null()) return {failed_start(mpirun, launch::shell_line(by_hand))};
  std::vector<Finding> findings{
      {.what = formatted("mpirun started {} ranks on {} hosts in {:.1f} s", report.said.at("ranks").get<int>(),
                         hosts.hosts.size(), report.seconds),
       .check = "start"}};
  for (Finding& finding : preflight::findings_from_json(report.said.at("findings"))) {
    if (finding.level != Level::Green) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::tools
