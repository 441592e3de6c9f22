#include "tools/doctor/probes.h"

#include <signal.h>

#include <algorithm>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_list.h"
#include "lockstep/launch/job_command.h"
#include "lockstep/preflight/login.h"
#include "tools/doctor/remote.h"

namespace lockstep::tools {
namespace {

using nlohmann::json;
using preflight::Finding;
using preflight::Level;
using std::chrono::steady_clock;

struct Probe {
  ProbedHost host;
  std::unique_ptr<Remote> process;
  bool answered = false;
  std::optional<std::string> said{};  // its part of the exchange at hand
};

std::vector<Remote*> processes(const std::vector<Probe>& probes) {
  std::vector<Remote*> all;
  for (const Probe& probe : probes) all.push_back(probe.process.get());
  return all;
}

std::vector<std::string> words_for(const ProbeOptions& options, const std::string& login) {
  if (launch::is_this_machine(login)) return {options.program, "doctor", "--probe"};  // as mpirun does
  std::vector<std::string> words = options.ssh;
  words.insert(words.end(), {login, "exec " + launch::shell_quoted(options.program) + " doctor --probe"});
  return words;
}

// The next line that a doctor's process has said: an object with `hello`, `all` or `findings`; null: none has come.
// Other lines are of the shell there, whose start files may print something.
json message_of(Remote& process) {
  while (const auto line = process.line()) {
    json said = json::parse(*line, nullptr, false);
    if (!said.is_object()) continue;
    if (said.contains("hello") || said.contains("all") || said.contains("findings")) return said;
  }
  return nullptr;
}

// Starts them all, and waits until each has said its first line or failed to.
std::vector<Probe> log_in(const ProbeOptions& options, const std::vector<ProbedHost>& hosts,
                          std::vector<Finding>& findings) {
  std::vector<Probe> probes;
  for (const ProbedHost& host : hosts)
    probes.push_back({host, std::make_unique<Remote>(words_for(options, host.login))});
  const auto deadline = steady_clock::now() + options.login_limit;
  const auto waits = [](const Probe& probe) { return !probe.answered && !probe.process->ended(); };
  while (steady_clock::now() < deadline && std::ranges::any_of(probes, waits)) {
    Remote::wait(processes(probes), 20);
    for (Probe& probe : probes) {
      if (!probe.answered && !message_of(*probe.process).is_null()) probe.answered = true;
    }
  }
  for (Probe& probe : probes) {
    if (probe.answered) continue;
    const bool ended = probe.process->ended();
    const int status = ended ? probe.process->status() : -1;
    findings.push_back(preflight::login_failure({.host = probe.host.login,
                                                 .port = options.port,
                                                 .program = options.program,
                                                 .status = status,
                                                 .errors = probe.process->errors()}));
  }
  std::erase_if(probes, [](const Probe& probe) { return !probe.answered; });
  return probes;
}

void begin(std::vector<Probe>& probes) {
  json names = json::array();
  for (const Probe& probe : probes) names.push_back(probe.host.login.substr(probe.host.login.find('@') + 1));
  for (std::size_t i = 0; i < probes.size(); ++i) {
    json subject = probes[i].host.subject;
    subject.update({{"rank", i}, {"size", probes.size()}, {"hosts", names}});
    probes[i].process->write_line(subject.dump());
  }
}

// Passes texts on until all have said their findings; each exchange may take `limit`. The finding of a process that
// ended before or did not answer, if one did.
std::optional<Finding> relay(std::vector<Probe>& probes, std::chrono::seconds limit, std::vector<Finding>& findings) {
  std::size_t done = 0;
  auto deadline = steady_clock::now() + limit;
  while (done < probes.size()) {
    Remote::wait(processes(probes), 50);
    for (Probe& probe : probes) {
      if (probe.said) continue;
      if (const json said = message_of(*probe.process); !said.is_null()) {
        if (!said.contains("findings")) {
          probe.said = said.at("all").get<std::string>();
          continue;
        }
        if (done++ == 0) {
          for (Finding& f : preflight::findings_from_json(said.at("findings"))) findings.push_back(std::move(f));
        }
        probe.said = "";
      } else if (probe.process->ended()) {
        return Finding{.level = Level::Red,
                       .what = formatted("the doctor's process ended with status {}: {}", probe.process->status(),
                                         probe.process->errors()),
                       .where = probe.host.login,
                       .mend = "run `lockstep doctor` on that host",
                       .check = "login"};
      } else if (steady_clock::now() > deadline) {
        return Finding{.level = Level::Red,
                       .what = "the doctor's process there has not answered in time",
                       .where = probe.host.login,
                       .mend = "run `lockstep doctor` on that host",
                       .check = "login"};
      }
    }
    if (done == 0 && std::ranges::all_of(probes, [](const Probe& probe) { return probe.said.has_value(); })) {
      json all = json::array();
      for (Probe& probe : probes) all.push_back(*std::exchange(probe.said, std::nullopt));
      for (Probe& probe : probes) probe.process->write_line(all.dump());
      deadline = steady_clock::now() + limit;  // hosts measure one another in turn: the whole takes longer with more
    }
  }
  return std::nullopt;
}

}  // namespace

ProbeReport probe_hosts(const ProbeOptions& options, const std::vector<ProbedHost>& hosts) {
  signal(SIGPIPE, SIG_IGN);  // of a process that has ended its stdout tells
  ProbeReport report;
  std::vector<Probe> probes = log_in(options, hosts, report.findings);
  if (report.findings.empty())
    report.findings.push_back(
        {.what = formatted("{} of {} hosts answer", probes.size(), hosts.size()), .check = "login"});
  report.all_answered = probes.size() == hosts.size();
  if (probes.empty()) return report;
  begin(probes);
  if (auto failed = relay(probes, options.limit, report.findings)) {
    report.findings.push_back(*std::move(failed));
    report.all_answered = false;
  }
  return report;
}

}  // namespace lockstep::tools
