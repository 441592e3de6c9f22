#include "tools/supervisor/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "lockstep/core/printable.h"
#include "tools/supervisor/mpi_traces.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::supervisor {
namespace {

// Quoted for the host's shell. The environment tells whose a process is, whatever its name; the shell itself has not
// got it.
std::string sweep(const ProbeOptions& options) {
  return fmt::format(
      R"sh('[ "$(cat /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid)" = "{}" ] && exit; )sh"
      R"(k=; for p in /proc/[0-9]*; do grep -qsz "^OMPI_LOCKSTEP_JOB={}$" $p/environ && kill -9 ${{p#/proc/}} && k=1; )"
      R"(done; [ -z "$k" ] || sleep 1; {}true')",
      options.here, options.job, traces_sweep(options.traces));
}

}  // namespace

std::string processes_here() {
  std::string boot = proc_file("/proc/sys/kernel/random/boot_id");
  while (boot.ends_with('\n')) boot.pop_back();
  std::error_code hidden;
  return fmt::format("{} {}", boot, std::filesystem::read_symlink("/proc/self/ns/pid", hidden).string());
}

Prober::Prober(const ProbeOptions& options, const std::vector<std::string>& hosts)
    : deadline_(std::chrono::steady_clock::now() + options.limit), limit_(options.limit) {
  for (const std::string& host : hosts) {
    std::vector<std::string> words = options.agent;
    words.insert(words.end(), {host, "sh", "-c", sweep(options)});
    probes_.push_back(
        {host, std::make_unique<Process>(words, ProcessOptions{.output = ProcessOptions::Output::WithErrors})});
  }
}

void Prober::look_at(Probe& probe) {
  probe.output += probe.process->read();
  if (const auto status = probe.process->ended()) {
    probe.output += probe.process->read_rest();
    probe.over = true;
    if (*status != 0) {
      probe.reason = last_line(probe.output);  // ssh says the reason last
      if (probe.reason.empty()) probe.reason = describe_status(*status);
    }
  } else if (std::chrono::steady_clock::now() > deadline_) {
    probe.over = true;
    probe.reason = fmt::format("no answer within {} s", static_cast<double>(limit_.count()) / 1000);
  }
  if (probe.over) probe.process.reset();
}

bool Prober::done() {
  for (Probe& probe : probes_) {
    if (!probe.over) look_at(probe);
  }
  return std::all_of(probes_.begin(), probes_.end(), [](const Probe& probe) { return probe.over; });
}

std::vector<ProbeResult> Prober::results() {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::vector<ProbeResult> results;
  for (const Probe& probe : probes_) results.push_back({probe.host, probe.reason});
  return results;
}

}  // namespace lockstep::supervisor
